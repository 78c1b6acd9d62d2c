"""Measures tools that start commands and store nothing.

Each tool gets as many no-op commands as its interface takes, and is timed from start to end. All of
them start one `sh -c true` for each command; tools that start a shell themselves get `true`.
"""

from __future__ import annotations

import os
import pathlib
import shlex
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from bench.figure import Side
from bench.limit import processes
from bench.peers import debian

_TIMEOUT_SECONDS: Final = 300
_NUMBERS: Final = "numbers"


@dataclass(frozen=True, slots=True)
class _Tool:
    """One way to run commands."""

    title: str
    command: Sequence[str]
    file: str
    """Name of the file that the command reads, in its working directory."""
    text: str


def flat(jobs: int, at_once: int) -> list[Side]:
    """Measure commands without dependencies with each installed tool, in jobs a second."""
    return [_side(one, jobs) for one in _flat(jobs, at_once)]


def chain(jobs: int) -> list[Side]:
    """Measure commands of which each waits for the previous one."""
    return [_side(one, jobs) for one in _graphs(jobs, 1, is_chain=True)]


def _flat(jobs: int, at_once: int) -> Iterator[_Tool]:
    numbers = "".join(f"{number}\n" for number in range(jobs))
    slots = str(at_once)
    if xargs := shutil.which("xargs"):
        # `sh -c` takes the appended number as its own name.
        command = [xargs, "-a", _NUMBERS, "-P", slots, "-n", "1", *processes.SHELL]
        yield _Tool(f"`xargs`, {slots} at once", command, _NUMBERS, numbers)
    if parallel := debian.program(debian.PARALLEL, "parallel"):
        # Like the other tools, it does not buffer output in files.
        quick = [str(parallel), "--will-cite", "--ungroup"]
        command = [*quick, "-j", slots, "-n", "0", "-a", _NUMBERS, "true"]
        yield _Tool(f"GNU `parallel`, {slots} at once", command, _NUMBERS, numbers)
    yield from _graphs(jobs, at_once, is_chain=False)


def _graphs(jobs: int, at_once: int, *, is_chain: bool) -> Iterator[_Tool]:
    """Yield the tools with dependencies. No command creates a file, so none is up to date."""
    mode = "a chain" if is_chain else f"{at_once} at once"
    names = [f"job{number}" for number in range(jobs)]
    waits = [(one, before) for one, before in zip(names[1:], names, strict=False) if is_chain]
    if make := shutil.which("make"):
        # The built-in rules are not needed.
        command = [make, "--silent", "--no-builtin-rules", "-j", str(at_once)]
        yield _Tool(f"`make`, {mode}", command, "Makefile", _makefile(names, waits))
    if ninja := debian.program(debian.NINJA, "ninja"):
        command = [str(ninja), "-j", str(at_once)]
        yield _Tool(f"`ninja`, {mode}", command, "build.ninja", _ninja(names, waits))


def _makefile(names: Sequence[str], waits: Sequence[tuple[str, str]]) -> str:
    every = " ".join(names)
    edges = "".join(f"{one}: {before}\n" for one, before in waits)
    return f"all: {every}\n.PHONY: all {every}\n{edges}{every}:\n\t{shlex.join(processes.SHELL)}\n"


def _ninja(names: Sequence[str], waits: Sequence[tuple[str, str]]) -> str:
    before = dict(waits)
    jobs = "".join(f"build {one}: work {before.get(one, '')}\n" for one in names)
    return f"rule work\n  command = true\n{jobs}"


def _side(tool: _Tool, jobs: int) -> Side:
    def measure() -> float:
        with tempfile.TemporaryDirectory(prefix="workron-bench-") as folder:
            (pathlib.Path(folder) / tool.file).write_text(tool.text, "utf-8")
            return jobs / _seconds(tool.command, folder)

    return Side(f"{tool.title}, `sh -c true`", measure)


def _seconds(command: Sequence[str], folder: str) -> float:
    # Without the variables of a `make` that started the bench, and without user settings.
    environment = {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": folder,
        "PARALLEL_SHELL": processes.SHELL[0],
    }
    began = time.perf_counter()
    subprocess.run(
        command,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        check=True,
        timeout=_TIMEOUT_SECONDS,
    )
    return time.perf_counter() - began
