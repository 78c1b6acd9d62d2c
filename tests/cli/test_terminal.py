"""The program on a real terminal: the live display comes, goes, and leaves the summary."""

import os
import pathlib
import pty
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest

Write = Callable[..., pathlib.Path]


@pytest.fixture
def on_terminal() -> Callable[..., tuple[int, str]]:
    """Run the program on a terminal of its own; its exit code and all that it wrote."""

    def on_terminal(*arguments: object) -> tuple[int, str]:
        ours, theirs = pty.openpty()
        environment = os.environ | {"TERM": "xterm", "COLUMNS": "100", "LINES": "30"}
        child = subprocess.Popen(
            [sys.executable, "-m", "workron", *map(str, arguments)],
            stdin=theirs, stdout=theirs, stderr=theirs, env=environment,
        )  # fmt: skip
        os.close(theirs)
        written = b"".join(_pieces(ours))
        os.close(ours)
        return child.wait(), written.decode()

    return on_terminal


def _pieces(terminal: int) -> Iterator[bytes]:
    while True:
        try:
            piece = os.read(terminal, 4096)
        except OSError:
            # Linux reports a terminal that nobody holds any more as a broken device.
            return
        if not piece:
            return
        yield piece


def test_run_shows_a_live_table_and_leaves_the_summary(
    on_terminal: Callable[..., tuple[int, str]], write: Write
) -> None:
    flow = write("flow", "name: many, count: 3, command: sleep 0.3")
    code, written = on_terminal("run", flow, "--slots", "1")
    assert code == 0
    assert "of 3 jobs" in written
    assert "▸ " in written
    assert written.rstrip().splitlines()[-1].startswith("slowest: flow/many/")


def test_output_on_a_terminal_has_nothing_that_the_terminal_would_obey(
    on_terminal: Callable[..., tuple[int, str]], write: Write, url: str
) -> None:
    job = write("loud", command="printf '\\033[2J\\033]0;title\\007shown'")
    on_terminal("run", job, "--store", url)
    assert on_terminal("output", "loud", "--store", url) == (0, "shown\r\n")
