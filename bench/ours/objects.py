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


class _Taken(NamedTuple):
    """What one process took, or each object in it: CPU in seconds, memory in KiB."""

    cpu: float
    peak: float
    held: float


class _Round(NamedTuple):
    """All ways, measured in turns."""

    bare: _Taken
    intake: _Taken
    leading: _Taken


def figures(dsn: str, long: Mapping[str, int]) -> Iterator[Figure]:
    """Have many objects be there, and know them all."""
    series = Series(lambda: _round(dsn, long))
    title = f"an operator that has {long['operator_objects']:,} objects in its store"
    bare = "a bare Kopf, whose handlers do nothing"

    ours = series.side(f"{title}: memory, settled", lambda one: one.intake.held)
    bound = series.side(f"{bare}, and 5 KiB more", lambda one: one.bare.held + _MORE_KIB)
    beside = series.side(bare, lambda one: one.bare.held)
    yield _figure("memory", "KiB/object", ours, bound, beside)
    ours = series.side(f"{title}: memory at its peak", lambda one: one.intake.peak)
    bound = series.side(f"{bare}, and 5 KiB more", lambda one: one.bare.peak + _MORE_KIB)
    beside = series.side(bare, lambda one: one.bare.peak)
    yield _figure("peak", "KiB/object", ours, bound, beside)
    ours = series.side(f"{title}: CPU", lambda one: _ms(one.intake))
    bound = series.side(f"{bare}, and 0.5 ms more", lambda one: _ms(one.bare) + _MORE_MS)
    beside = series.side(bare, lambda one: _ms(one.bare))
    yield _figure("cpu", "ms/object", ours, bound, beside)
    ours = series.side(
        "the same, and each is told in its status: CPU", lambda one: _ms(one.leading)
    )
    beside = series.side("without that", lambda one: _ms(one.intake))
    yield Figure("objects-told", "ms/object", ours, [Against(beside)], part=_PART)


def _figure(name: str, unit: str, ours: Side, bound: Side, beside: Side) -> Figure:
    against = [Against(bound, Goal(1, is_most=True)), Against(beside)]
    return Figure(f"objects-{name}", unit, ours, against, part=_PART)


def _ms(each: _Taken) -> float:
    return 1_000 * each.cpu


def _round(dsn: str, long: Mapping[str, int]) -> _Round:
    many, settling = long["operator_objects"], long["operator_settling"]
    few = max(1, many // _FEWER)
    pairs = [
        [asyncio.run(_taken(dsn, way, count, settling)) for count in (few, many)]
        for way in _Round._fields
    ]
    return _Round(*(_each(little, much, many - few) for little, much in pairs))


def _each(little: _Taken, much: _Taken, objects: int) -> _Taken:
    # No less than what can be told from nothing.
    least = (_TICK_SECONDS, _PAGE_KIB, _PAGE_KIB)
    differences = (much[at] - little[at] for at in range(len(least)))
    return _Taken(*(max(one) / objects for one in zip(differences, least, strict=True)))


async def _taken(dsn: str, way: str, count: int, settling: int) -> _Taken:
    async with server.database(dsn) as url:
        return await asyncio.to_thread(_run, way, count, settling, url)


def _run(way: str, count: int, settling: int, url: str) -> _Taken:
    with _api(count) as way_in:
        done = subprocess.run(
            [sys.executable, "-m", "bench.ours.objects_held", way, str(count), str(settling), url],
            env={**os.environ, "KUBECONFIG": way_in},
            capture_output=True,
            check=False,
        )
    if done.returncode:
        raise RuntimeError(f"{way}: {done.stderr.decode(errors='replace')[-2000:]}")
    return _Taken(**json.loads(done.stdout))


@contextlib.contextmanager
def _api(count: int) -> Iterator[str]:
    """Start the cluster, and give the way in."""
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
