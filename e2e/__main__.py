"""All end-to-end tests: `python -m e2e`, with what they share made once.

First what needs no cluster; then the promises, those side by side that leave each other alone, and
the others one at a time. `KEEP=1` leaves the cluster up; with KUBECONFIG in the environment the
tests use the cluster of kind's that it names, and leave it up.
"""

from __future__ import annotations

import contextlib
import os
import pathlib
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Final

import pytest

from e2e import harness

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from e2e.release import Release


_HERE: Final = pathlib.Path(__file__).parent
_ROOT: Final = _HERE.parent
_PROMISES: Final = _HERE / "promises"
_SIDE_BY_SIDE: Final = "4"
"""Most of the time they wait, for a lease or for a pod."""
_IN_ORDER: Final = ("-p", "no:randomly", "-p", "no:xdist")
"""The last of them takes away what they share."""
_TESTED: Final = 0
_NOTHING_CHOSEN: Final = 5


def main(arguments: Sequence[str]) -> int:
    """Run all; 0 if nothing has failed."""
    codes = [_run("without a cluster", [str(_HERE), f"--ignore={_PROMISES}", *arguments])]
    with _release() as release:
        given = harness.handed_on(release)
        many = ("-n", _SIDE_BY_SIDE, "--dist", "loadfile")
        for what, options in (
            ("side by side", ("-m", "not alone", *many)),
            ("one at a time", ("-m", "alone", *_IN_ORDER)),
        ):
            codes.append(_run(what, [str(_PROMISES), *options, *arguments], **given))
    return max(0 if code in {_TESTED, _NOTHING_CHOSEN} else code for code in codes)


@contextlib.contextmanager
def _release() -> Iterator[Release]:
    harness.need_tools()
    named, keep = os.environ.get("KUBECONFIG"), bool(os.environ.get("KEEP"))
    with contextlib.ExitStack() as made:
        config = pathlib.Path(named) if named else made.enter_context(harness.clustered(keep=keep))
        began = time.monotonic()
        release = made.enter_context(harness.released(config, keep=keep))
        print(f"e2e: installed after {time.monotonic() - began:.0f} s")
        yield release
        if keep:
            print(f"e2e: the cluster stays: export KUBECONFIG={config}")


def _run(what: str, arguments: Sequence[str], **environment: str) -> int:
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *arguments],
        cwd=_ROOT, env={**os.environ, **environment}, check=False,
    )  # fmt: skip
    print(f"e2e: {what}: {time.monotonic() - began:.0f} s", flush=True)
    return done.returncode


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except (pytest.skip.Exception, pytest.fail.Exception) as why:
        print(f"e2e: the promises are not looked at: {why}")
        sys.exit(isinstance(why, pytest.fail.Exception))
