"""Workers and maintainers as processes of their own, and the hands that end, stop and wake them."""

import contextlib
import os
import pathlib
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence

from faults import processes
from faults.polling import until
from faults.processes import Process
from faults.proxy import Proxy

_COMMAND = [sys.executable, "-P", "-m", "workron"]
_RUNNER = "workron_runner"
_OPEN_DOOR = [sys.executable, "-P", "-m", _RUNNER, "--socket"]
_FAREWELL_SECONDS = 20
_ROUTINE = re.compile(r'"event":"(attempt running|attempt ended|worker registered)"')


class Program:
    """A command of Workron that goes on until it is told to end."""

    def __init__(
        self,
        folder: pathlib.Path,
        arguments: Sequence[object],
        environment: dict[str, str],
        command: Sequence[str] = _COMMAND,
    ) -> None:
        self.folder = folder
        self.log = folder.with_suffix(".log")
        folder.mkdir(exist_ok=True)
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [*command, *map(str, arguments)],
                cwd=folder.parent,
                env=_surroundings(folder) | environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self.pid = self._process.pid

    @property
    def is_alive(self) -> bool:
        """Whether it has not ended."""
        return self._process.poll() is None

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal, if it is there."""
        self._process.send_signal(number)

    def kill(self) -> None:
        """End it as no program can prevent."""
        self.signal(signal.SIGKILL)

    def tell_to_end(self) -> None:
        """Ask it to end."""
        self.signal(signal.SIGCONT)
        self.signal(signal.SIGTERM)

    def end(self) -> int:
        """Ask it to end, and give its exit code."""
        self.tell_to_end()
        return self.wait()

    def wait(self) -> int:
        """Give its exit code when it has ended."""
        try:
            return self._process.wait(_FAREWELL_SECONDS)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"{self.folder.name} does not end:\n{self.said()}") from None

    def said(self) -> str:
        """Give the end of what it wrote, but for the attempts of which nothing is to be told."""
        lines = self.log.read_text(errors="replace").splitlines(keepends=True)
        return "".join(one for one in lines if not _ROUTINE.search(one))[-2000:]


class Worker(Program):
    """An agent, its runner and its commands, with a PostgreSQL that it reaches through a proxy."""

    def __init__(
        self,
        folder: pathlib.Path,
        proxy: Proxy,
        options: Sequence[object],
        environment: dict[str, str],
    ) -> None:
        self.name = folder.name
        self.proxy = proxy
        arguments = ["worker", "--store", proxy.dsn, *options]
        super().__init__(folder, arguments, environment)

    def runner(self) -> Process | None:
        """Give its runner, if there is one now."""
        for one in processes.descendants(self.pid):
            if one.parent == self.pid and _RUNNER in one.command:
                return one
        return None

    def commands(self) -> list[Process]:
        """List what its runner has started, and what that has."""
        runner = self.runner()
        return processes.descendants(runner.pid) if runner else []

    def await_runner(self) -> int:
        """Give the pid of its runner, as soon as there is one."""
        runner = until(self.runner, f"{self.name} has a runner", told=self.said)
        assert runner is not None
        return runner.pid

    def stop(self, *pids: int) -> None:
        """Freeze these processes."""
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGSTOP)

    def wake(self, *pids: int) -> None:
        """Have frozen ones go on, those that were killed meanwhile aside."""
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)


class Runner(Program):
    """A runner that no agent has started, at the path where one may find it."""

    def __init__(self, folder: pathlib.Path, path: pathlib.Path) -> None:
        super().__init__(folder, [path], {}, _OPEN_DOOR)
        self.path = path


def leftovers(known: frozenset[int], place_of_server: pathlib.Path) -> list[Process]:
    """List what still runs that did not before, but for the server's own processes."""
    processes.bury()
    return [
        one
        for one in processes.descendants(os.getpid())
        if one.pid not in known and not _is_in(one, place_of_server)
    ]


def _is_in(one: Process, place: pathlib.Path) -> bool:
    where = one.directory
    return where is not None and place in (where, *where.parents)


def sockets(folder: pathlib.Path) -> Iterator[pathlib.Path]:
    """List the sockets below a folder."""
    return (path for path in folder.rglob("*") if path.is_socket())


def _surroundings(folder: pathlib.Path) -> dict[str, str]:
    path = os.environ["PATH"]
    return {"PATH": path, "HOME": str(folder), "TMPDIR": str(folder), "LANG": "C.UTF-8"}
