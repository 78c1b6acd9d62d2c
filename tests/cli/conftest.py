"""The program as a user calls it: in this process for speed, or as one of its own."""

import contextlib
import ctypes
import gc
import io
import pathlib
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

from workron.cli import main

_PR_GET_DUMPABLE = 3
_PR_SET_DUMPABLE = 4


@dataclass(frozen=True)
class Said:
    """What a call ended with."""

    code: int
    out: str
    err: str
    is_hidden: bool = False
    """Whether others could not look into its process when it ended."""


Call = Callable[..., Said]


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    known = ("STORE", "DEBUG", "TOKEN", "RUNNER", "POD_UID")
    for name in (*(f"WORKRON_{one}" for one in known), "TRACEPARENT"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(autouse=True)
def _nothing_stays_frozen() -> Iterator[None]:
    """Undo what a command in this process leaves to its end, or other tests' cycles never go."""
    yield
    gc.unfreeze()


@contextlib.contextmanager
def _own_process() -> Iterator[None]:
    """Undo what a command does to its process: to its signals, and to who may look into it."""
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

    def call(*arguments: object, stdin: str = "") -> Said:
        monkeypatch.setattr("sys.argv", ["workron", *map(str, arguments)])
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
        with _own_process():
            with pytest.raises(SystemExit) as ended:
                main()
            is_hidden = ctypes.CDLL(None).prctl(_PR_GET_DUMPABLE) == 0
        out, err = capsys.readouterr()
        code = ended.value.code
        return Said(code if isinstance(code, int) else 0, out, err, is_hidden=is_hidden)

    return call


@pytest.fixture
def start() -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Start the program as a process; what a test that failed leaves of it is ended."""
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


@pytest.fixture
def url(tmp_path: pathlib.Path) -> str:
    """The URL of a store in a file."""
    return f"sqlite:///{tmp_path}/jobs.db"


@pytest.fixture
def write(tmp_path: pathlib.Path) -> Callable[..., pathlib.Path]:
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
def done(call: Call, write: Callable[..., pathlib.Path], url: str) -> str:
    """The URL of a store in which a workflow has run."""
    result = "env: [{name: R, value: '{\"a\": [true, null]}'}]"
    tasks = (
        f'name: one, {result}, command: \'echo "$R" > $WORKRON_RESULT; printf "out\\\\n"\'',
        "name: many, count: 2, command: echo $WORKRON_INDEX",
        "name: bad, command: 'echo why; exit 9', maxAttempts: 1",
    )
    assert call("run", write("flow", *tasks), "--store", url).code == 1
    return url
