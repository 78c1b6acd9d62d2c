"""The program as a user calls it: in this process for speed, or as a process of its own."""

import contextlib
import ctypes
import gc
import io
import json
import pathlib
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from workron.cli import main

_PR_GET_DUMPABLE = 3
_PR_SET_DUMPABLE = 4


@dataclass(frozen=True)
class CallResult:
    """The exit code and the output of a call."""

    code: int
    out: str
    err: str
    is_hidden: bool = False
    """Whether other processes could not read the memory of the process when it ended."""


Call = Callable[..., CallResult]
Start = Callable[..., subprocess.Popen[str]]
Write = Callable[..., pathlib.Path]


@pytest.fixture(autouse=True, scope="session")
def _default_signals() -> Iterator[None]:
    """Handle signals as a shell does: processes inherit those that are ignored, as by `nohup`."""
    numbers = (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGTERM, signal.SIGCHLD)
    ignored = [number for number in numbers if signal.getsignal(number) is signal.SIG_IGN]
    for number in ignored:
        is_interrupt = number is signal.SIGINT
        signal.signal(number, signal.default_int_handler if is_interrupt else signal.SIG_DFL)
    yield
    for number in ignored:
        signal.signal(number, signal.SIG_IGN)


@pytest.fixture(autouse=True)
def _unfrozen() -> Iterator[None]:
    yield
    # A command in this process leaves its objects frozen, because it is about to end.
    gc.unfreeze()


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    known = ("STORE", "PROFILE", "DEBUG", "TOKEN", "RUNNER", "POD_UID")
    for name in (*(f"WORKRON_{one}" for one in known), "TRACEPARENT"):
        monkeypatch.delenv(name, raising=False)


@contextlib.contextmanager
def _own_process() -> Iterator[None]:
    """Restore what a command changes in its process: signal handlers, and the dumpable flag."""
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD)
    handlers = {number: signal.getsignal(number) for number in numbers}
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 1)


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    """Call the program in this process."""

    def call(*arguments: object, stdin: str | None = "") -> CallResult:
        monkeypatch.setattr("sys.argv", ["workron", *map(str, arguments)])
        given = None if stdin is None else io.TextIOWrapper(io.BytesIO(stdin.encode()))
        monkeypatch.setattr("sys.stdin", given)
        with _own_process():
            with pytest.raises(SystemExit) as ended:
                main()
            is_hidden = ctypes.CDLL(None).prctl(_PR_GET_DUMPABLE) == 0
        out, err = capsys.readouterr()
        code = ended.value.code
        return CallResult(code if isinstance(code, int) else 0, out, err, is_hidden=is_hidden)

    return call


@pytest.fixture
def start() -> Iterator[Start]:
    """Start the program as a process, which is killed at the end of the test if it still runs."""
    started: list[subprocess.Popen[str]] = []

    def start(*arguments: object) -> subprocess.Popen[str]:
        started.append(
            subprocess.Popen(
                [sys.executable, "-m", "workron", *map(str, arguments)],
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
        )
        return started[-1]

    yield start
    for process in started:
        with process:
            process.kill()


def read_log_until(process: subprocess.Popen[str], event: str) -> dict[str, Any]:
    """Read the JSON log of a process up to this event, and return its line."""
    assert process.stdout is not None
    for text in process.stdout:
        line: dict[str, Any] = json.loads(text)
        if line["event"] == event:
            return line
    raise AssertionError(f"the process ended without the event {event}")


@pytest.fixture
def url(tmp_path: pathlib.Path) -> str:
    """The URL of a store in a file."""
    return f"sqlite:///{tmp_path}/jobs.db"


@pytest.fixture
def write(tmp_path: pathlib.Path) -> Write:
    """Write a manifest: of a Job, or of a Workflow when there are tasks."""

    def write(name: str, *tasks: str, command: str = "true", more: str = "") -> pathlib.Path:
        path = tmp_path / f"{name}.yaml"
        path.write_text(_workflow(name, tasks) if tasks else _job(name, command, more))
        return path

    return write


def _job(name: str, command: str, more: str) -> str:
    return f"""
apiVersion: workron.dev/v1alpha1
kind: Job
metadata: {{name: {name}}}
spec:
  command: |
    {command}
  {more}
"""


def _workflow(name: str, tasks: tuple[str, ...]) -> str:
    listed = "\n".join(f"    - {{{task}}}" for task in tasks)
    return f"""
apiVersion: workron.dev/v1alpha1
kind: Workflow
metadata: {{name: {name}}}
spec:
  tasks:
{listed}
"""


@pytest.fixture
def done(call: Call, write: Write, url: str) -> str:
    """The URL of a store in which a workflow has run."""
    result = "env: [{name: R, value: '{\"a\": [true, null]}'}]"
    tasks = (
        f'name: one, {result}, command: \'echo "$R" > $WORKRON_RESULT; printf "out\\\\n"\'',
        "name: many, count: 2, command: echo $WORKRON_INDEX",
        "name: bad, command: 'echo why; exit 9', maxAttempts: 1",
    )
    assert call("run", write("flow", *tasks), "--store", url).code == 1
    return url
