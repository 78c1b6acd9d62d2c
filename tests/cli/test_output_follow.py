"""`workron output --follow`: the exact output of a running job, as it arrives."""

import contextlib
import io
import os
import pathlib
import random
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.cli.conftest import Call, Start, Write
from tests.cli.test_terminal import Terminal
from workron.cli.formatting import open_sink


@contextlib.contextmanager
def _following(*arguments: object) -> Iterator[subprocess.Popen[bytes]]:
    """Start the program with a pipe for its output."""
    child = subprocess.Popen(
        [sys.executable, "-m", "workron", "output", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        yield child
    finally:
        child.kill()
        child.communicate()


def _read(child: subprocess.Popen[bytes], size: int) -> bytes:
    assert child.stdout is not None
    return child.stdout.read(size)


def test_follow_prints_new_output_until_the_job_ends(
    call: Call, start: Start, write: Write, url: str, tmp_path: pathlib.Path
) -> None:
    os.mkfifo(tmp_path / "go")
    data = random.Random(1).randbytes(600_000) + b"\0"
    (tmp_path / "odd").write_bytes(data)
    command = f"cat {tmp_path}/odd; cat {tmp_path}/go"
    path = write("long", command=command, more="outputStreamBytes: 1000000")
    call("submit", path, "--store", url)
    with _following("long", "-f", "--store", url) as child:
        # A worker, because `run` prints the output too, and waits until it is read.
        run = start("worker", "--max-jobs", "1", "--store", url)
        assert _read(child, len(data)) == data
        now = subprocess.run(
            [sys.executable, "-m", "workron", "output", "long", "--store", url],
            capture_output=True,
            check=True,
        )
        assert (now.stdout, now.stderr) == (data, b"")
        (tmp_path / "go").write_text("no line feed")
        out, err = child.communicate()
    assert (out, err, child.returncode) == (b"no line feed", b"", 0)
    run.communicate()
    assert run.returncode == 0


def test_follow_continues_with_the_next_attempt_when_a_job_is_retried(
    call: Call, start: Start, write: Write, url: str, tmp_path: pathlib.Path
) -> None:
    os.mkfifo(tmp_path / "go")
    command = f'echo "this is $WORKRON_ATTEMPT"; test $WORKRON_ATTEMPT = 2 || ! cat {tmp_path}/go'
    path = write("twice", command=command, more="outputStreamBytes: 99\n  backoff: {initial: 1ms}")
    call("submit", path, "--store", url)
    with _following("twice", "--follow", "--store", url) as child:
        run = start("run", path, "--store", url)
        assert _read(child, 10) == b"this is 1\n"
        (tmp_path / "go").write_text("")
        out, err = child.communicate()
        run.communicate()
    assert (out, err, child.returncode) == (b"this is 2\n", b"workron: attempt 2 started\n", 0)


def test_follow_prints_a_note_when_the_job_does_not_stream(
    call: Call, start: Start, write: Write, url: str
) -> None:
    path = write("plain", command="echo kept")
    call("submit", path, "--store", url)
    with _following("plain", "-f", "--store", url) as child:
        run = start("run", path, "--store", url)
        out, err = child.communicate()
        run.communicate()
    assert (out, child.returncode) == (b"kept\n", 0)
    assert err.startswith(b"workron: this job has no outputStreamBytes")


def test_follow_prints_all_output_when_the_job_has_ended(
    call: Call, write: Write, url: str
) -> None:
    call("run", write("done", command="echo out"), "--store", url)
    result = call("output", "done", "-f", "--store", url)
    assert (result.code, result.out, result.err) == (0, "out\n", "")


class _Screen(io.TextIOWrapper):
    """A standard output that is a terminal and records what is printed."""

    def __init__(self) -> None:
        super().__init__(io.BytesIO(), encoding="utf-8", write_through=True)

    def isatty(self) -> bool:
        return True

    @property
    def shown(self) -> str:
        buffer = self.buffer
        assert isinstance(buffer, io.BytesIO)
        return buffer.getvalue().decode()


@pytest.mark.parametrize(
    ("parts", "shown"),
    [
        ([b"a", b"b\n"], "ab\n"),
        ([b"\xc3", b"\xbc\n"], "ü\n"),
        ([b"a\x1b[3", b"1mred\x1b", b"[0m\n"], "ared\n"),
        ([b"a\x1b]0;ti", b"tle\x07b\n"], "ab\n"),
        ([b"\x1b", b"\n"], "\n"),
        ([b"\x1b[" + b"1" * 5000, b"x\n"], None),
        ([b"no line feed"], "no line feed\n"),
        ([b"\xff"], "\N{REPLACEMENT CHARACTER}\n"),
        ([], ""),
    ],
)
def test_control_sequences_are_removed_when_they_arrive_in_parts(
    parts: list[bytes], shown: str | None
) -> None:
    screen = _Screen()
    with contextlib.redirect_stdout(screen), open_sink() as write:
        for part in parts:
            write(part)
    assert "\x1b" not in screen.shown
    assert shown is None or screen.shown == shown


def test_text_is_printed_when_its_line_is_not_complete() -> None:
    screen = _Screen()
    with contextlib.redirect_stdout(screen), open_sink() as write:
        write(b"50 %")
        assert screen.shown == "50 %"


def test_output_has_no_control_sequences_when_printed_on_a_terminal(
    call: Call, write: Write, url: str
) -> None:
    call("run", write("odd", command=r"printf '\033[31mred\033[0m\007'"), "--store", url)
    terminal = Terminal("output", "odd", "--store", url)
    assert terminal.end() == 0
    assert terminal.written == "red\r\n"
