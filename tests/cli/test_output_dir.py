"""`--output-dir`: each job has its own file, and an error of a file fails no job."""

import asyncio
import contextlib
import os
import pathlib
from collections.abc import Iterator
from typing import Any, cast

import pytest

from tests.cli import rows
from workron.cli.output import OutputDir
from workron.cli.progress import ObservedRun
from workron.core.ids import JobId
from workron.core.plan import Kind
from workron.core.states import State
from workron.store.api import ReadStore
from workron.store.types import ClaimedJob


def _claimed(job: int) -> ClaimedJob:
    return cast("ClaimedJob", type("Claim", (), {"job": JobId(job)})())


async def _write(folder: OutputDir, job: int, data: bytes) -> None:
    listener, dealt_with = folder.listener(_claimed(job)), asyncio.Queue[int]()
    assert listener is not None
    listener(data, dealt_with.put_nowait)
    assert await dealt_with.get() == len(data)


def _files(folder: pathlib.Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


async def test_each_job_has_its_own_file_when_names_are_equal(tmp_path: pathlib.Path) -> None:
    folder = OutputDir(tmp_path)
    alone = rows.run("flow.a", Kind.JOB, job=7)
    folder.expect(alone, [rows.row("flow.a", State.QUEUED, job=7)])
    folder.expect(rows.run("flow"), [rows.row("a", State.QUEUED, job=8)])
    await _write(folder, 7, b"seven")
    await _write(folder, 8, b"eight")
    assert _files(tmp_path) == {"flow.a.log": b"seven", "flow.a-8.log": b"eight"}


async def test_file_name_is_cut_when_it_is_too_long(tmp_path: pathlib.Path) -> None:
    folder = OutputDir(tmp_path)
    root = rows.run("x" * 253)
    folder.expect(root, [rows.row("task", State.QUEUED, job=8)])
    await _write(folder, 8, b"eight")
    assert _files(tmp_path) == {"x" * 200 + "-8.log": b"eight"}
    assert folder.error is None


async def test_no_file_is_written_when_the_job_belongs_to_another_run(
    tmp_path: pathlib.Path,
) -> None:
    assert OutputDir(tmp_path).listener(_claimed(99)) is None
    assert _files(tmp_path) == {}


async def test_first_error_is_kept_when_files_cannot_be_written(tmp_path: pathlib.Path) -> None:
    folder = OutputDir(tmp_path / "gone")
    folder.expect(rows.run("flow"), [rows.row("a", State.QUEUED, job=8)])
    (tmp_path / "gone").rmdir()
    await _write(folder, 8, b"lost")
    assert folder.error == f"{tmp_path}/gone/flow.a.log: No such file or directory"


class FakeReader:
    async def read_output(self, job: JobId) -> bytes:
        return b"kept %d" % job


@pytest.mark.parametrize(
    ("fields", "content"),
    [
        ({"state": State.SUCCEEDED, "attempts": 1}, {"flow.a.log": b"kept 8"}),
        ({"state": State.SKIPPED}, {}),
        ({"state": State.RUNNING, "attempts": 1}, {}),
    ],
)
async def test_output_is_filled_in_when_an_earlier_process_ran_the_job(
    tmp_path: pathlib.Path, fields: dict[str, Any], content: dict[str, bytes]
) -> None:
    folder, workflow = OutputDir(tmp_path), rows.run("flow")
    own = rows.row("flow", State.RUNNING, job=1, kind=Kind.WORKFLOW)
    run = ObservedRun(workflow, [own, rows.row("a", job=8, **fields)])
    folder.expect(workflow, run.rows)
    await folder.complete(cast("ReadStore", FakeReader()), [run])
    assert _files(tmp_path) == content


class HangingOutputDir(OutputDir):
    """A folder in which writes to the file of job 8 hang until the test reads it."""

    def __init__(self, folder: pathlib.Path, **limits: int) -> None:
        self.path = folder / "flow.a.log"
        os.mkfifo(self.path)
        super().__init__(folder, **limits)
        names = [rows.row("a", State.QUEUED, job=8), rows.row("b", State.QUEUED, job=9)]
        self.expect(rows.run("flow"), names)

    @contextlib.contextmanager
    def read(self) -> Iterator[int]:
        """Yield a descriptor to read the file from, so that it can be written."""
        descriptor = os.open(self.path, os.O_RDONLY | os.O_NONBLOCK)
        yield descriptor
        os.close(descriptor)


async def test_event_loop_is_not_blocked_when_the_folder_hangs(
    tmp_path: pathlib.Path,
) -> None:
    hanging = HangingOutputDir(tmp_path)
    writing = asyncio.create_task(_write(hanging, 8, b"eight"))
    await asyncio.sleep(0)
    assert not writing.done()
    with hanging.read() as descriptor:
        await writing
        assert os.read(descriptor, 10) == b"eight"


async def test_all_output_is_written_when_the_run_is_complete(tmp_path: pathlib.Path) -> None:
    hanging = HangingOutputDir(tmp_path)
    writing = [asyncio.create_task(_write(hanging, job, b"%d" % job)) for job in (8, 9)]
    await asyncio.sleep(0)
    completing = asyncio.create_task(hanging.complete(cast("ReadStore", FakeReader()), []))
    await asyncio.sleep(0)
    with hanging.read() as descriptor:
        await completing
        assert os.read(descriptor, 10) == b"8"
    assert (tmp_path / "flow.b.log").read_bytes() == b"9"
    await asyncio.gather(*writing)


async def test_all_output_is_written_when_the_block_is_left(tmp_path: pathlib.Path) -> None:
    hanging = HangingOutputDir(tmp_path)
    with contextlib.ExitStack() as reading:
        with hanging:
            for job in (8, 9):
                listener = hanging.listener(_claimed(job))
                assert listener is not None
                listener(b"%d" % job, lambda _: None)
            descriptor = reading.enter_context(hanging.read())
        assert os.read(descriptor, 10) == b"8"
        assert (tmp_path / "flow.b.log").read_bytes() == b"9"


async def test_output_is_filled_in_when_the_folder_was_too_slow_at_the_start(
    tmp_path: pathlib.Path,
) -> None:
    hanging = HangingOutputDir(tmp_path, max_pending_bytes=4)
    writing = asyncio.create_task(_write(hanging, 8, b"eight"))
    await asyncio.sleep(0)
    assert hanging.listener(_claimed(9)) is None
    row = rows.row("b", State.SUCCEEDED, job=9, attempts=1)
    run = ObservedRun(
        rows.run("flow"), [rows.row("flow", State.RUNNING, job=1, kind=Kind.WORKFLOW), row]
    )
    with hanging.read():
        await hanging.complete(cast("ReadStore", FakeReader()), [run])
    await writing
    assert (tmp_path / "flow.b.log").read_bytes() == b"kept 9"
    assert hanging.error == f"{tmp_path}/flow.b.log: the disk is slower than the output of the jobs"
