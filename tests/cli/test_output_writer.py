"""The thread that writes the output of `workron run`: in order, and until its reader closes it."""

import errno
import os
import threading
from collections.abc import Iterator
from typing import TextIO

import pytest

from workron.cli.output_writer import OutputWriter


@pytest.fixture
def pipe() -> Iterator[tuple[int, TextIO]]:
    """A pipe: the descriptor to read from, and the stream to write to."""
    reading, writing = os.pipe()
    stream = open(writing, "w")  # noqa: PTH123, SIM115
    yield reading, stream
    stream.close()
    os.close(reading)


def test_text_begins_on_its_own_line_when_output_has_no_line_feed(pipe: tuple[int, TextIO]) -> None:
    reading, stream = pipe
    done: list[str] = []
    with OutputWriter(stream) as writer:
        writer.write("first\n")
        writer.write_output(b"50 %", lambda: done.append("output"))
        writer.write("second\n")
        writer.write_output(b"", lambda: done.append("nothing"))
        writer.write("third\n")
    assert os.read(reading, 1000) == b"first\n50 %\nsecond\nthird\n"
    assert done == ["output", "nothing"]


def test_caller_is_not_blocked_when_the_reader_is_slow(pipe: tuple[int, TextIO]) -> None:
    reading, stream = pipe
    written = threading.Event()
    with OutputWriter(stream) as writer:
        writer.write_output(b"x" * 1_000_000, written.set)
        assert not written.is_set()
        left = 1_000_000
        while left:
            left -= len(os.read(reading, left))
    assert written.is_set()


def test_everything_is_dropped_when_the_reader_has_closed_the_pipe() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    closed, done = threading.Event(), threading.Event()
    with open(writing, "w") as stream:  # noqa: PTH123
        writer = OutputWriter(stream)
        writer.on_close = closed.set
        with writer:
            writer.write("first\n")
            assert closed.wait(60)
            closed.clear()
            writer.write_output(b"x" * 1_000_000, done.set)
    assert (writer.is_closed_by_reader, closed.is_set(), done.is_set()) == (True, False, True)


def test_error_is_kept_when_the_disk_is_full() -> None:
    with open("/dev/full", "w") as stream:  # noqa: PTH123
        with OutputWriter(stream) as writer:
            writer.write("first\n")
        assert writer.error is not None
        assert (writer.error.errno, writer.is_closed_by_reader) == (errno.ENOSPC, False)
