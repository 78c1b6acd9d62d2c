"""The program on a real terminal: the live display disappears, and the summary remains."""

import os
import pathlib
import pty
import subprocess
import sys

from tests.cli.conftest import Write


class Terminal:
    """A terminal, and the program on it."""

    def __init__(self, *arguments: object) -> None:
        self._ours, theirs = pty.openpty()
        self.written = ""
        self._child = subprocess.Popen(
            [sys.executable, "-m", "workron", *map(str, arguments)],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env=os.environ | {"TERM": "xterm", "COLUMNS": "100", "LINES": "30"},
        )
        os.close(theirs)

    def read_until(self, words: str) -> None:
        """Read until these words have been written."""
        while words not in self.written:
            assert self._read(), self.written

    def end(self) -> int:
        """Read to the end, and return the exit code."""
        while self._read():
            pass
        os.close(self._ours)
        return self._child.wait()

    def _read(self) -> bool:
        try:
            piece = os.read(self._ours, 4096)
        except OSError:
            # Linux reports a terminal that no process has open as a broken device.
            return False
        self.written += piece.decode(errors="replace")
        return bool(piece)


def test_run_shows_a_live_table_and_then_the_summary(write: Write, tmp_path: pathlib.Path) -> None:
    os.mkfifo(tmp_path / "go")
    flow = write("flow", f"name: one, command: cat {tmp_path}/go", "name: two, command: echo")
    terminal = Terminal("run", flow, "--slots", "1")
    terminal.read_until("▸ ")
    (tmp_path / "go").write_text("go")
    assert terminal.end() == 0
    assert "of 2 jobs" in terminal.written
    assert "slowest: flow/one" in terminal.written.splitlines()[-1]


def test_summary_has_no_control_sequences_when_printed_on_a_terminal(
    write: Write, url: str
) -> None:
    job = write("loud", command="printf '\\033[2J\\033]0;title\\007shown'")
    Terminal("run", job, "--store", url).end()
    terminal = Terminal("output", "loud", "--store", url)
    assert (terminal.end(), terminal.written) == (0, "shown\r\n")
