"""Measures memory and CPU of the controller for each object of a cluster, and those of bare Kopf.

Each side runs in its own process, once with many objects and once with a hundredth of them. The
figure is the difference divided by the objects, so it excludes the start of a program and its
imports.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from bench import server
from bench.figure import Against, Figure, Goal, Side
from bench.series import Series

_PART: Final = "objects"
_MORE_KIB: Final = 5.0
_MORE_MS: Final = 0.5
_FEWER: Final = 100
_PAGE_KIB: Final = 4.0
_TICK_SECONDS: Final = 0.01


class _Usage(NamedTuple):
    """The usage of one process or of each object: CPU in seconds, memory in KiB."""

    cpu: float
    peak: float
    held: float


class _Round(NamedTuple):
    """All variants, measured in turns."""

    bare: _Usage
    intake: _Usage
    leading: _Usage


def figures(dsn: str, long: Mapping[str, int]) -> Iterator[Figure]:
    """Measure a controller that knows many objects."""
    series = Series(lambda: _round(dsn, long))
    title = f"a controller with {long['operator_objects']:,} objects in its store"
    bare = "bare Kopf with empty handlers"

    ours = series.side(f"{title}: memory, settled", lambda one: one.intake.held)
    bound = series.side(f"{bare}, plus 5 KiB", lambda one: one.bare.held + _MORE_KIB)
    other = series.side(bare, lambda one: one.bare.held)
    yield _figure("memory", "KiB/object", ours, bound, other)
    ours = series.side(f"{title}: memory at its peak", lambda one: one.intake.peak)
    bound = series.side(f"{bare}, plus 5 KiB", lambda one: one.bare.peak + _MORE_KIB)
    other = series.side(bare, lambda one: one.bare.peak)
    yield _figure("peak", "KiB/object", ours, bound, other)
    ours = series.side(f"{title}: CPU", lambda one: _ms(one.intake))
    bound = series.side(f"{bare}, plus 0.5 ms", lambda one: _ms(one.bare) + _MORE_MS)
    other = series.side(bare, lambda one: _ms(one.bare))
    yield _figure("cpu", "ms/object", ours, bound, other)
    ours = series.side("the same, with status writes: CPU", lambda one: _ms(one.leading))
    other = series.side("without status writes", lambda one: _ms(one.intake))
    yield Figure("objects-status", "ms/object", ours, [Against(other)], part=_PART)


def _figure(name: str, unit: str, ours: Side, bound: Side, other: Side) -> Figure:
    against = [Against(bound, Goal(1, is_most=True)), Against(other)]
    return Figure(f"objects-{name}", unit, ours, against, part=_PART)


def _ms(each: _Usage) -> float:
    return 1_000 * each.cpu


def _round(dsn: str, long: Mapping[str, int]) -> _Round:
    many, settling = long["operator_objects"], long["operator_settling"]
    few = max(1, many // _FEWER)
    pairs = [
        [asyncio.run(_usage(dsn, way, count, settling)) for count in (few, many)]
        for way in _Round._fields
    ]
    return _Round(*(_each(few_usage, many_usage, many - few) for few_usage, many_usage in pairs))


def _each(few_usage: _Usage, many_usage: _Usage, objects: int) -> _Usage:
    # At least the smallest difference that can be measured.
    least = (_TICK_SECONDS, _PAGE_KIB, _PAGE_KIB)
    differences = (many_usage[at] - few_usage[at] for at in range(len(least)))
    return _Usage(*(max(one) / objects for one in zip(differences, least, strict=True)))


async def _usage(dsn: str, way: str, count: int, settling: int) -> _Usage:
    async with server.database(dsn) as url:
        return await asyncio.to_thread(_run, way, count, settling, url)


def _run(way: str, count: int, settling: int, url: str) -> _Usage:
    with _api(count) as kubeconfig:
        done = subprocess.run(
            [sys.executable, "-m", "bench.ours.objects_held", way, str(count), str(settling), url],
            env={**os.environ, "KUBECONFIG": kubeconfig},
            capture_output=True,
            check=False,
        )
    if done.returncode:
        raise RuntimeError(f"{way}: {done.stderr.decode(errors='replace')[-2000:]}")
    return _Usage(**json.loads(done.stdout))


@contextlib.contextmanager
def _api(count: int) -> Iterator[str]:
    """Start the cluster, and yield the path of its kubeconfig."""
    with tempfile.TemporaryDirectory(prefix="workron-bench-") as folder:
        api = subprocess.Popen(
            [sys.executable, "-m", "bench.ours.objects_api", folder, str(count)],
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            assert api.stdout is not None
            yield api.stdout.readline().strip()
        finally:
            api.kill()
            api.wait()
