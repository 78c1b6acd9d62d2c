"""Workers, runners and maintainers as processes that a test stops, continues and kills."""

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
_RUNNER_COMMAND = [sys.executable, "-P", "-m", _RUNNER, "--socket"]
_EXIT_TIMEOUT_SECONDS = 20
_ROUTINE = re.compile(r'"event":"(attempt running|attempt ended|worker registered)"')


class Program:
    """A command of Workron that runs until it is terminated."""

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
                env=_environment(folder) | environment,
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
        """Send a signal, if it is running."""
        self._process.send_signal(number)

    def kill(self) -> None:
        """Send SIGKILL."""
        self.signal(signal.SIGKILL)

    def terminate(self) -> None:
        """Continue it if it is stopped, and send SIGTERM."""
        self.signal(signal.SIGCONT)
        self.signal(signal.SIGTERM)

    def end(self) -> int:
        """Terminate it, and return its exit code."""
        self.terminate()
        return self.wait()

    def wait(self) -> int:
        """Wait for its exit code."""
        try:
            return self._process.wait(_EXIT_TIMEOUT_SECONDS)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"{self.folder.name} does not exit:\n{self.log_tail()}") from None

    def log_tail(self) -> str:
        """Return the end of its log, without routine events."""
        lines = self.log.read_text(errors="replace").splitlines(keepends=True)
        return "".join(one for one in lines if not _ROUTINE.search(one))[-2000:]


class Worker(Program):
    """An agent, its runner and its commands, connected to PostgreSQL through a proxy."""

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
        """Return its runner, if it has one."""
        for one in processes.descendants(self.pid):
            if one.parent == self.pid and _RUNNER in one.command:
                return one
        return None

    def commands(self) -> list[Process]:
        """List the descendants of its runner."""
        runner = self.runner()
        return processes.descendants(runner.pid) if runner else []

    def await_runner(self) -> int:
        """Wait for its runner, and return the pid."""
        runner = until(self.runner, f"{self.name} has a runner", details=self.log_tail)
        assert runner is not None
        return runner.pid

    def stop(self, *pids: int) -> None:
        """Freeze these processes."""
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGSTOP)

    def wake(self, *pids: int) -> None:
        """Continue frozen processes that are still alive."""
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)


class Runner(Program):
    """A standalone runner that listens at a path."""

    def __init__(self, folder: pathlib.Path, path: pathlib.Path) -> None:
        super().__init__(folder, [path], {}, _RUNNER_COMMAND)
        self.path = path


def leftovers(known: frozenset[int], server_folder: pathlib.Path) -> list[Process]:
    """List new processes that still run, except those of the server."""
    processes.reap()
    return [
        one
        for one in processes.descendants(os.getpid())
        if one.pid not in known and not _is_in(one, server_folder)
    ]


def _is_in(one: Process, folder: pathlib.Path) -> bool:
    directory = one.directory
    return directory is not None and folder in (directory, *directory.parents)


def sockets(folder: pathlib.Path) -> Iterator[pathlib.Path]:
    """List the sockets below a folder."""
    return (path for path in folder.rglob("*") if path.is_socket())


def _environment(folder: pathlib.Path) -> dict[str, str]:
    path = os.environ["PATH"]
    return {"PATH": path, "HOME": str(folder), "TMPDIR": str(folder), "LANG": "C.UTF-8"}
