"""The page keeps the parts that a run has not measured."""

import dataclasses
import pathlib

import pytest

from bench import config, page
from bench.figure import Figure, Side
from bench.part import PARTS
from bench.report import Limit, Run
from bench.turns import Row


def _run(title: str, part: str) -> Run:
    side = Side(title, lambda: 1.0)
    figure = Figure(title, "jobs/s", side, [], part=part)
    limits = [Limit("disk", "writes/s", 1.0, 2.0)]
    return Run(config.read("smoke"), limits, [Row(figure, side, None, [2.0], [0.5])])


@pytest.fixture
def folder(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    monkeypatch.setattr("bench.page._FOLDER", tmp_path)
    (tmp_path / "performance.md").write_text("what was there before there were parts\n")
    return tmp_path


def test_only_the_measured_part_is_replaced(folder: pathlib.Path) -> None:
    page.publish(_run("an hour of work", "starved"), "the long command")
    first = (folder / "performance.md").read_text()
    assert "## Throughput and latency\n\nNot published yet." in first
    page.publish(_run("a quick one", "minutes"), "the short command")
    text = (folder / "performance.md").read_text()
    assert text.count("Not published yet") == len(PARTS) - 2
    assert text.index("`the short command`") < text.index("a quick one")
    assert first.partition("<!-- depth -->")[2] == text.partition("<!-- depth -->")[2]
    assert text.count("<!-- ") == 2 * len(PARTS)
    assert {one.name for one in folder.iterdir()} == {
        "performance.md", "performance-minutes.svg", "performance-starved.svg",
    }  # fmt: skip


def test_both_parts_are_written_when_a_run_measures_two(folder: pathlib.Path) -> None:
    page.publish(_run("old", "starved"), "the old command")
    run = _run("an hour of work", "starved")
    rows = [*_run("a quick one", "minutes").rows, *run.rows]
    page.publish(dataclasses.replace(run, rows=rows), "the command")
    text = (folder / "performance.md").read_text()
    assert text.count("`the command`") == 2
    assert "the old command" not in text
