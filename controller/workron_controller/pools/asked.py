"""Pools that nobody applied: those that values of the chart name, and the template of `default`.

Read anew each time, as a ConfigMap changes while it is mounted. A slip in one of them stops no
other. Called by `founding`.
"""

from __future__ import annotations

import dataclasses
import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pydantic
import structlog

from workron.core.manifest import document, explain, text
from workron.core.model.meta import API_VERSION
from workron.core.model.pool import WorkerPool

if TYPE_CHECKING:
    import pathlib
    from collections.abc import Iterator, Mapping, Sequence

DEFAULT: Final = "default"
_KEYS: Final = frozenset({"namespace", "name", "spec"})
_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Asked:
    """A pool that there should be."""

    namespace: str
    name: str
    spec: Mapping[str, Any]

    @property
    def manifest(self) -> dict[str, Any]:
        """Give it as an object."""
        return {
            "apiVersion": API_VERSION,
            "kind": "WorkerPool",
            "metadata": {"name": self.name, "namespace": self.namespace},
            "spec": dict(self.spec),
        }


def pools(path: pathlib.Path | None) -> Sequence[Asked]:
    """Give those that a file lists, each as {namespace, name, spec}; what is wrong is logged."""
    return [] if path is None else _pools(path, _content(path))


def default(path: pathlib.Path | None, namespace: str) -> Asked | None:
    """Give the pool that is made in a namespace by itself; the file holds its spec."""
    made = None if path is None else _template(path, _content(path))
    return None if made is None else dataclasses.replace(made, namespace=namespace)


def _content(path: pathlib.Path) -> bytes | str:
    """Read a file, or say why that cannot be done."""
    try:
        return path.read_bytes()
    except OSError as error:
        return str(error.strerror)


# By their content, so that each slip is told once and not every few seconds.
@functools.lru_cache(maxsize=2)
def _pools(path: pathlib.Path, content: bytes | str) -> Sequence[Asked]:
    entries: list[Any] = []
    for value in _values(path, content):
        if isinstance(value, list):
            entries += value
        elif value is not None:
            _log.warning("pools cannot be read", file=str(path), found=explain.found(value))
    return list(_good(path, entries))


@functools.lru_cache(maxsize=2)
def _template(path: pathlib.Path, content: bytes | str) -> Asked | None:
    entries = [{"name": DEFAULT, "spec": spec} for spec in _values(path, content)]
    return next(_good(path, entries), None)


def _values(path: pathlib.Path, content: bytes | str) -> Iterator[Any]:
    if isinstance(content, str):
        _log.warning("file cannot be read", file=str(path), error=content)
        return
    for one in text.documents(content):
        for problem in one.problems:
            _log.warning("file cannot be read", error=problem.told(str(path)))
        if not one.problems:
            yield one.value


def _good(path: pathlib.Path, entries: Sequence[Any]) -> Iterator[Asked]:
    for number, entry in enumerate(entries):
        if not isinstance(entry, dict) or not entry.keys() <= _KEYS or "name" not in entry:
            _log.warning("pool is refused", file=str(path), number=number, needs=sorted(_KEYS))
            continue
        named = {"name": entry["name"], "namespace": entry.get("namespace", "default")}
        raw = {"apiVersion": API_VERSION, "kind": "WorkerPool", "metadata": named}
        spec = entry.get("spec") or {}
        try:
            WorkerPool.parse(raw | {"spec": spec})
        except pydantic.ValidationError as error:
            _log.warning("pool is refused", file=str(path), message=refusal(error), **named)
        else:
            yield Asked(named["namespace"], named["name"], spec)


def refusal(error: pydantic.ValidationError) -> str:
    """Say what is wrong with a pool."""
    found, more = explain.explain(error, WorkerPool)
    told = [f"{document.render(path)}: {message}" for path, message in found]
    return "; ".join([*told, *([f"and {more:,} more"] if more else [])])
