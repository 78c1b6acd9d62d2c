"""Runs all end-to-end tests: `python -m e2e`, which is `make e2e`.

The tests that need no cluster run first. Then one cluster with one release serves all of
`e2e/promises`: first the files that do not disturb each other, side by side, then the tests marked
`alone`, one at a time.

Missing tools (docker, kind, kubectl, helm) fail the run at once, before any test.
`WORKRON_E2E_CLUSTER=optional` runs what can be run without a cluster instead, and says what it left
out. `KEEP=1` leaves the cluster up. With KUBECONFIG in the environment the tests use that kind
cluster and leave it up.
"""

from __future__ import annotations

import contextlib
import os
import pathlib
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Final

from e2e import harness

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import AbstractContextManager

    from e2e.release import Release


_E2E: Final = pathlib.Path(__file__).parent
_ROOT: Final = _E2E.parent
_PROMISES: Final = _E2E / "promises"
_PROCESSES: Final = "4"
"""More than the cores of a small machine: the tests spend most of their time waiting."""
_IN_ORDER: Final = ("-p", "no:randomly", "-p", "no:xdist")
"""The last of these tests removes the release that the others use."""
_TESTS_PASSED: Final = 0
_NO_TEST_SELECTED: Final = 5


def main(
    arguments: Sequence[str],
    run_pytest: Callable[..., int] | None = None,
    install: Callable[[], AbstractContextManager[Release]] | None = None,
) -> int:
    """Run all tests; return 0 only if every test that was asked for ran and passed."""
    run, install = run_pytest or _run_pytest, install or _install_release
    try:
        harness.require_tools()
    except harness.NoClusterError as error:
        return _run_without_cluster(arguments, run, error)
    code = run("without a cluster", [str(_E2E), f"--ignore={_PROMISES}", *arguments])
    try:
        with install() as release:
            return max(code, _run_promises(arguments, run, release))
    except harness.NoClusterError as error:
        return max(code, _report_missing_cluster(error))


def _run_without_cluster(
    arguments: Sequence[str], run: Callable[..., int], error: harness.NoClusterError
) -> int:
    if not harness.is_cluster_optional():
        return _report_missing_cluster(error)
    code = run("without a cluster", [str(_E2E), f"--ignore={_PROMISES}", *arguments])
    return max(code, _report_missing_cluster(error))


def _report_missing_cluster(error: harness.NoClusterError) -> int:
    print(f"e2e: NOT TESTED: {_PROMISES.relative_to(_ROOT)}: {error}", file=sys.stderr)
    if harness.is_cluster_optional():
        return 0
    print(f"e2e: failed; {harness.OPTIONAL_HINT}", file=sys.stderr)
    return 1


def _run_promises(arguments: Sequence[str], run: Callable[..., int], release: Release) -> int:
    environment = harness.environment_of(release)
    parallel = ("-m", "not alone", "-n", _PROCESSES, "--dist", "loadfile")
    alone = ("-m", "alone", *_IN_ORDER)
    codes = [
        run(label, [str(_PROMISES), *options, *arguments], **environment)
        for label, options in (("side by side", parallel), ("one at a time", alone))
    ]
    return max(codes)


@contextlib.contextmanager
def _install_release() -> Iterator[Release]:
    kubeconfig, keep = os.environ.get("KUBECONFIG"), bool(os.environ.get("KEEP"))
    with contextlib.ExitStack() as stack:
        config = (
            pathlib.Path(kubeconfig)
            if kubeconfig
            else stack.enter_context(harness.kind_cluster(keep=keep))
        )
        started = time.monotonic()
        release = stack.enter_context(harness.installed_release(config, keep=keep))
        print(f"e2e: installed the release in {time.monotonic() - started:.0f} s", flush=True)
        yield release
        if keep:
            print(f"e2e: the cluster stays up: export KUBECONFIG={config}")


def _run_pytest(label: str, arguments: Sequence[str], **environment: str) -> int:
    """Run pytest in its own process; selecting no test is not a failure."""
    started = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *arguments],
        cwd=_ROOT, env={**os.environ, **environment}, check=False,
    )  # fmt: skip
    print(f"e2e: {label}: {time.monotonic() - started:.0f} s", flush=True)
    return 0 if done.returncode in {_TESTS_PASSED, _NO_TEST_SELECTED} else done.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
