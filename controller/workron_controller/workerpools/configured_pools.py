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

from workron.core import errors
from workron.core.manifest import problems, yaml_reader
from workron.core.model.meta import API_VERSION
from workron.core.model.workerpool import WorkerPool
from workron_controller.kube import errors as api_errors
from workron_controller.kube import resources
from workron_controller.workerpools import conditions

if TYPE_CHECKING:
    import pathlib
    from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from workron_controller.jobs.cache import StatusReason
    from workron_controller.workerpools.reconciler import ReconcilerDependencies


DEFAULT_POOL: Final = "default"
_KEYS: Final = frozenset({"namespace", "name", "spec"})
_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class ConfiguredPool:
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


def configured_pools(path: pathlib.Path | None) -> Sequence[ConfiguredPool]:
    """Give those that a file lists, each as {namespace, name, spec}; what is wrong is logged."""
    return [] if path is None else _pools(path, _content(path))


def default_pool(path: pathlib.Path | None, namespace: str) -> ConfiguredPool | None:
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
def _pools(path: pathlib.Path, content: bytes | str) -> Sequence[ConfiguredPool]:
    entries: list[Any] = []
    for value in _values(path, content):
        if isinstance(value, list):
            entries += value
        elif value is not None:
            _log.warning(
                "pools cannot be read", file=str(path), found=problems.describe_value(value)
            )
    return list(_good(path, entries))


@functools.lru_cache(maxsize=2)
def _template(path: pathlib.Path, content: bytes | str) -> ConfiguredPool | None:
    entries = [{"name": DEFAULT_POOL, "spec": spec} for spec in _values(path, content)]
    return next(_good(path, entries), None)


def _values(path: pathlib.Path, content: bytes | str) -> Iterator[Any]:
    if isinstance(content, str):
        _log.warning("file cannot be read", file=str(path), error=content)
        return
    for one in yaml_reader.read_documents(content):
        for problem in one.problems:
            _log.warning("file cannot be read", error=problem.format(str(path)))
        if not one.problems:
            yield one.value


def _good(path: pathlib.Path, entries: Sequence[Any]) -> Iterator[ConfiguredPool]:
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
            _log.warning("pool is refused", file=str(path), message=pool_refusal(error), **named)
        else:
            yield ConfiguredPool(named["namespace"], named["name"], spec)


def pool_refusal(error: pydantic.ValidationError) -> str:
    """Say what is wrong with a pool."""
    found, more = problems.explain(error, WorkerPool)
    told = [f"{problems.format_path(path)}: {message}" for path, message in found]
    return "; ".join([*told, *([f"and {more:,} more"] if more else [])])


if TYPE_CHECKING:
    Name = tuple[str, str]

_AGAIN_SECONDS: Final = 300.0
_MISSED_SECONDS: Final = 10.0
"""One that is not seen although it was made may be about to be deleted."""
_DENIED_SECONDS: Final = 10.0


class PoolCreator:
    """Which were made, and which could not be."""

    def __init__(self, around: ReconcilerDependencies) -> None:
        self._around = around
        self._said: dict[Name, tuple[ConfiguredPool, float]] = {}
        self._troubles: dict[Name, tuple[StatusReason, float]] = {}

    async def found(self, there: AbstractSet[Name], wanted: AbstractSet[Name]) -> None:
        """Have what the values name be as they say, and make `default` where it is wanted."""
        settings = self._around.settings
        for one in configured_pools(settings.asked):
            if not self._covers(one.namespace):
                self._complain(one)
            elif not self._is_as_said(one, there):
                await self._make(one, self._apply)
        for namespace, pool in sorted(wanted - there):
            if pool == DEFAULT_POOL and self._covers(namespace):
                default = default_pool(settings.template, namespace)
                if default is not None:
                    await self._make(default, self._create)

    def hint(self, namespace: str, pool: str) -> StatusReason | None:
        """Say why a pool is not there, unless it is about to be made."""
        if not self._covers(namespace):
            return None
        if (trouble := self._troubles.get((namespace, pool))) is not None:
            return trouble[0]
        is_made = pool == DEFAULT_POOL and self._around.settings.template is not None
        return None if is_made else conditions.not_found(namespace, pool)

    def _covers(self, namespace: str) -> bool:
        return not self._around.namespaces or namespace in self._around.namespaces

    def _is_as_said(self, one: ConfiguredPool, there: AbstractSet[Name]) -> bool:
        name = one.namespace, one.name
        said, at = self._said.get(name, (None, 0.0))
        rest = _AGAIN_SECONDS if name in there else _MISSED_SECONDS
        return said == one and self._around.clock.monotonic() < at + rest

    def _complain(self, one: ConfiguredPool) -> None:
        name = one.namespace, one.name
        if name not in self._said:
            _log.warning("pool is not made: its namespace is not watched", pool=name)
        self._said[name] = one, 0.0

    async def _make(
        self, one: ConfiguredPool, how: Callable[[ConfiguredPool], Awaitable[None]]
    ) -> None:
        name, now = (one.namespace, one.name), self._around.clock.monotonic()
        before, until = self._troubles.get(name, (None, 0.0))
        if now < until:
            return
        try:
            await how(one)
        except api_errors.ConflictError:
            # It is there by now.
            return
        except errors.WorkronError as error:
            why = self._why(one, error)
            if why != before:
                _log.warning("pool cannot be made", pool=name, error=str(error))
            self._troubles[name] = why, now + _DENIED_SECONDS
        else:
            _log.info("pool is made", pool=name)
            self._troubles.pop(name, None)

    async def _apply(self, one: ConfiguredPool) -> None:
        place = resources.WORKERPOOLS.at(one.namespace, one.name)
        await self._around.api.apply(place, one.manifest)
        self._said[one.namespace, one.name] = one, self._around.clock.monotonic()

    async def _create(self, one: ConfiguredPool) -> None:
        await self._around.api.create(resources.WORKERPOOLS.at(one.namespace), one.manifest)

    def _why(self, one: ConfiguredPool, error: errors.WorkronError) -> StatusReason:
        enabling = self._around.settings.enabling(one.namespace)
        why = conditions.condition_of_error(error, one.namespace, enabling)
        return why or conditions.not_found(one.namespace, one.name)
