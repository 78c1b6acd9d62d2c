"""Files of output: every job has its own, whatever its name, and trouble harms no job."""

import pathlib
from typing import Any, cast

import pytest

from tests.cli import rows
from workron.cli.feed import Run
from workron.cli.output_dir import OutputDir
from workron.core.ids import JobId
from workron.core.plan import Kind
from workron.core.states import State
from workron.store.protocol import Claimed, ReaderDoor


def _claimed(job: int) -> Claimed:
    return cast("Claimed", type("Claim", (), {"job": JobId(job)})())


def _hear(folder: OutputDir, job: int, data: bytes) -> None:
    listener, dealt_with = folder.listener(_claimed(job)), list[int]()
    assert listener is not None
    listener(data, dealt_with.append)
    assert dealt_with == [len(data)]


def _files(folder: pathlib.Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_jobs_that_would_share_a_file_have_one_each(tmp_path: pathlib.Path) -> None:
    folder = OutputDir(tmp_path)
    alone = rows.root("flow.a", Kind.JOB, job=7)
    folder.expect(alone, [rows.row("flow.a", State.QUEUED, job=7)])
    folder.expect(rows.root("flow"), [rows.row("a", State.QUEUED, job=8)])
    _hear(folder, 7, b"seven")
    _hear(folder, 8, b"eight")
    assert _files(tmp_path) == {"flow.a.log": b"seven", "flow.a-8.log": b"eight"}


def test_name_that_is_too_long_for_a_file_is_cut(tmp_path: pathlib.Path) -> None:
    folder = OutputDir(tmp_path)
    root = rows.root("x" * 253)
    folder.expect(root, [rows.row("task", State.QUEUED, job=8)])
    _hear(folder, 8, b"eight")
    assert _files(tmp_path) == {"x" * 200 + "-8.log": b"eight"}
    assert folder.trouble is None


def test_job_of_another_run_is_not_written(tmp_path: pathlib.Path) -> None:
    assert OutputDir(tmp_path).listener(_claimed(99)) is None
    assert _files(tmp_path) == {}


def test_trouble_is_remembered_and_harms_nobody(tmp_path: pathlib.Path) -> None:
    folder = OutputDir(tmp_path / "gone")
    folder.expect(rows.root("flow"), [rows.row("a", State.QUEUED, job=8)])
    (tmp_path / "gone").rmdir()
    _hear(folder, 8, b"lost")
    assert folder.trouble == f"{tmp_path}/gone/flow.a.log: No such file or directory"


class Reader:
    async def output(self, job: JobId) -> bytes:
        return b"kept %d" % job


@pytest.mark.parametrize(
    ("fields", "content"),
    [
        ({"state": State.SUCCEEDED, "attempts": 1}, {"flow.a.log": b"kept 8"}),
        ({"state": State.SKIPPED}, {}),
        ({"state": State.RUNNING, "attempts": 1}, {}),
    ],
)
async def test_what_an_earlier_run_wrote_is_filled_in(
    tmp_path: pathlib.Path, fields: dict[str, Any], content: dict[str, bytes]
) -> None:
    folder, root = OutputDir(tmp_path), rows.root("flow")
    own = rows.row("flow", State.RUNNING, job=1, kind=Kind.WORKFLOW)
    run = Run(root, [own, rows.row("a", job=8, **fields)])
    folder.expect(root, run.rows)
    await folder.complete(cast("ReaderDoor", Reader()), [run])
    assert _files(tmp_path) == content
