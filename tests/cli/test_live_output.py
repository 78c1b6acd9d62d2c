"""Output of jobs as it comes, with and without their names."""

import asyncio
import fcntl
import io
import os
from collections.abc import Iterator
from typing import TextIO, cast

import pytest
from rich.console import Console

from tests.cli import rows
from workron.cli.live_output import LiveOutput
from workron.cli.output_writer import OutputWriter
from workron.cli.progress import RunSnapshot
from workron.core.ids import JobId
from workron.core.states import State
from workron.store.api import ReadStore
from workron.store.types import ClaimedJob, JobRow

_ROWS = [rows.row("a", State.QUEUED, job=2), rows.row("many", State.QUEUED, job=3, index=0)]


class Printed:
    """A live output, and what it has printed."""

    def __init__(self, stream: TextIO, reading: int, *, has_names: bool) -> None:
        self.writer = OutputWriter(stream)
        console = Console(file=io.StringIO(), color_system=None)
        self.output = LiveOutput(self.writer, console, has_names=has_names)
        self.output.expect(rows.run(), _ROWS)
        self._reading = reading

    async def attempt(self, job: int, *chunks: bytes) -> None:
        claimed = cast("ClaimedJob", type("Claim", (), {"job": JobId(job)})())
        listener, acknowledged = self.output.listener(claimed), asyncio.Queue[int]()
        assert listener is not None
        for chunk in chunks:
            listener(chunk, acknowledged.put_nowait)
            assert await acknowledged.get() == len(chunk)

    async def end(self, *ended: JobRow, failing: JobRow | None = None) -> None:
        failed = [(rows.run(), failing)] if failing else []
        snapshot = RunSnapshot([], [(rows.run(), row) for row in ended], failed)
        await self.output.complete(cast("ReadStore", FakeReader()), snapshot)

    def text(self) -> bytes:
        return os.read(self._reading, 100_000)


class FakeReader:
    async def read_output(self, job: JobId) -> bytes:
        return b"stored of %d" % job


@pytest.fixture(params=[False, True], ids=["single", "named"])
def printed(request: pytest.FixtureRequest) -> Iterator[Printed]:
    reading, writing = os.pipe()
    # Tests read after they have written.
    fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, 2**20)
    with open(writing, "w") as stream:  # noqa: PTH123
        printed = Printed(stream, reading, has_names=request.param)
        with printed.writer:
            yield printed
    os.close(reading)


_single = pytest.mark.parametrize("printed", [False], indirect=True, ids=["single"])
_named = pytest.mark.parametrize("printed", [True], indirect=True, ids=["named"])


@_single
async def test_exact_bytes_are_printed_when_the_job_is_single(printed: Printed) -> None:
    data = b"\x1b[31mred\xff\0\rno line feed"
    await printed.attempt(2, data[:5], data[5:])
    assert printed.text() == data


@_named
async def test_lines_have_their_name_when_jobs_run_at_the_same_time(printed: Printed) -> None:
    await asyncio.gather(printed.attempt(2, b"on", b"e\ntwo\n"), printed.attempt(3, b"three\n"))
    assert sorted(printed.text().splitlines()) == [
        b"flow/a      | one", b"flow/a      | two", b"flow/many/0 | three",
    ]  # fmt: skip


@_named
async def test_last_line_is_printed_when_the_attempt_ends_without_line_feed(
    printed: Printed,
) -> None:
    await printed.attempt(2, b"first\nlast of one")
    assert printed.text() == b"flow/a      | first\n"
    await printed.attempt(2, b"last of two")
    await printed.end(failing=rows.row("a", State.WAITING, attempts=2))
    await printed.attempt(2, b"last of three")
    await printed.end(rows.row("a", State.SUCCEEDED, attempts=3))
    printed.writer.write("end\n")
    await printed.attempt(3, b"\n")
    assert printed.text().splitlines() == [
        b"flow/a      | last of one",
        b"flow/a      | last of two",
        b"flow/a      | last of three",
        b"end",
        b"flow/many/0 | ",
    ]


@_named
async def test_line_is_cut_when_it_is_too_long(printed: Printed) -> None:
    await printed.attempt(2, b"x" * 70_000)
    assert len(printed.text()) > 65_000


async def test_stored_output_is_printed_when_the_job_ran_elsewhere(printed: Printed) -> None:
    await printed.end(rows.row("a", State.SUCCEEDED, attempts=1), rows.row("b", State.SKIPPED))
    await printed.end(rows.row("a", State.SUCCEEDED, attempts=1))
    await printed.attempt(3, b"\n")
    first, _, rest = printed.text().partition(b"stored of 2")
    assert first in {b"", b"flow/a      | "}
    assert b"stored" not in rest


async def test_nothing_is_printed_when_the_job_belongs_to_another_run(printed: Printed) -> None:
    claimed = cast("ClaimedJob", type("Claim", (), {"job": JobId(99)})())
    assert printed.output.listener(claimed) is None
