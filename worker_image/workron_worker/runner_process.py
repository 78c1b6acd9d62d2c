"""A runner that is a child of its agent, over a pair of sockets.

Called by `runner_executor`, and by whoever makes one.
"""

from __future__ import annotations

import os
import pathlib
import socket
import subprocess
import sys
import tempfile
from typing import TYPE_CHECKING, Final

import workron_runner
from workron_runner import orphans
from workron_runner.frame import ProtocolError
from workron_runner.link import Link
from workron_worker import runner_line
from workron_worker.executor import StartError
from workron_worker.runner_line import RunnerLine
from workron_worker.runner_options import RunnerOptions

if TYPE_CHECKING:
    from uuid import UUID

_COMMAND: Final = (sys.executable, "-PSs", "-m", "workron_runner")
_USUAL: Final = RunnerOptions()


class _KilledError(StartError):
    """Somebody killed a runner that was about to begin."""


class Children:
    """Has each runner started by this process."""

    are_awaited = False

    def __init__(self, options: RunnerOptions = _USUAL) -> None:
        self._options = options

    def begin(self, boot: UUID) -> RunnerProcess:
        """Start one."""
        return begun(boot, self._options)

    def clear(self, boot: UUID) -> None:
        """End all that carries the boot, or has one of the uids."""
        orphans.end(boot)
        self._options.end_all()


def begun(boot: UUID, options: RunnerOptions) -> RunnerProcess:
    """Start a runner; one that is killed as it begins is no reason to do without."""
    try:
        return RunnerProcess(boot, options)
    except _KilledError:
        return RunnerProcess(boot, options)


class RunnerProcess(RunnerLine):
    """One such runner; StartError if there is none to be had."""

    def __init__(self, boot: UUID, options: RunnerOptions) -> None:
        self._child, link = _start(options)
        super().__init__(link)
        try:
            self._greet(boot)
        except ProtocolError as error:
            self.bury()
            if self._child.returncode < 0:
                raise _KilledError(f"no runner can be had: {error}; it was killed") from None
            said = "; its standard error says why" if self._child.returncode else ""
            raise StartError(f"no runner can be had: {error}{said}") from None

    @property
    def pid(self) -> int:
        """Of the runner."""
        return self._child.pid

    def bury(self) -> None:
        """Close the connection and wait; one that does not end is killed."""
        self._link.close()
        try:
            self._child.wait(runner_line.FAREWELL_SECONDS)
        except subprocess.TimeoutExpired:
            self._child.kill()
            self._child.wait()


def _start(options: RunnerOptions) -> tuple[subprocess.Popen[bytes], Link]:
    if not sys.platform.startswith("linux"):
        raise StartError(
            f"commands are run on Linux only, and this is {sys.platform}: start workron in a Linux"
            " container or virtual machine"
        )
    ours, theirs = socket.socketpair()
    # Not in isolated mode: the package may stand anywhere, and this names where.
    home = str(pathlib.Path(workron_runner.__file__).parents[1])
    passed = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
    with theirs:
        try:
            child = subprocess.Popen(  # noqa: S603 - this Python, and our own package
                [*_COMMAND, "--descriptor", str(theirs.fileno()), *options.words()],
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                env=passed | {"PYTHONPATH": home, "TMPDIR": tempfile.gettempdir()},
                start_new_session=True,
            )
        except OSError as error:
            ours.close()
            raise StartError(f"no runner can be started: {error.strerror}") from error
    return child, Link(ours)
