"""Installed tools that start commands are measured with the same commands."""

import pathlib
import re

import pytest

from bench.limit import command_tools, processes
from bench.peers import debian, peer


@pytest.fixture(autouse=True)
def _nothing_is_installed(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    monkeypatch.setattr(peer, "_FOLDER", tmp_path / "peers")


@pytest.fixture
def starts(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> pathlib.Path:
    """Replace the shell by a program that records each start."""
    log, shell = tmp_path / "starts", tmp_path / "shell"
    shell.write_text(f'#!/bin/sh\necho "$1 $2" >>{log}\n')
    shell.chmod(0o755)
    monkeypatch.setattr(processes, "SHELL", [str(shell), "-c", "true"])
    return log


@pytest.mark.parametrize("tool", [0, 1])
def test_every_job_is_started_once(tool: int, starts: pathlib.Path) -> None:
    side = command_tools.flat(5, 2)[tool]
    assert side.measure() > 0
    assert starts.read_text() == "-c true\n" * 5


def test_chain_is_run_to_its_end(starts: pathlib.Path) -> None:
    (side,) = command_tools.chain(5)
    assert side.measure() > 0
    assert starts.read_text() == "-c true\n" * 5


def test_tool_is_omitted_when_it_is_not_installed() -> None:
    titles = [one.title for one in command_tools.flat(5, 2)]
    assert titles == [
        "`xargs`, 2 at once, `sh -c true`",
        "`make`, 2 at once, `sh -c true`",
    ]


@pytest.fixture
def _all_are_here() -> None:
    for kit, name in ((debian.NINJA, "ninja"), (debian.PARALLEL, "parallel")):
        programs = kit.folder / "usr" / "bin"
        programs.mkdir(parents=True)
        (programs / name).touch()


@pytest.mark.usefixtures("_all_are_here")
def test_ninja_and_parallel_are_measured_when_they_are_installed() -> None:
    words = [one.title.split("`")[1] for one in command_tools.flat(5, 2)]
    assert words == ["xargs", "parallel", "make", "ninja"]
    assert [one.title.split("`")[1] for one in command_tools.chain(5)] == ["make", "ninja"]


@pytest.mark.usefixtures("_all_are_here")
@pytest.mark.parametrize("is_chain", [True, False])
def test_jobs_wait_for_the_previous_one_only_when_they_are_a_chain(is_chain: bool) -> None:
    make, ninja = command_tools._graphs(3, 1, is_chain=is_chain)
    assert ("\njob1: job0\njob2: job1\n" in make.text) == is_chain
    assert re.findall("(?m)^build (.*)$", ninja.text) == (
        ["job0: work ", "job1: work job0", "job2: work job1"]
        if is_chain
        else ["job0: work ", "job1: work ", "job2: work "]
    )
