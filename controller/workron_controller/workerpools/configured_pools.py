"""Creates the pools of the installation: those of the chart's values, and `default` on demand.

The files are mounted from a ConfigMap, which changes while the controller runs, so they are read in
every round. An error in one pool is logged once and does not affect the others.
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

    from workron_controller.kube.conditions import StatusReason
    from workron_controller.workerpools.config import PoolDependencies

    Name = tuple[str, str]


DEFAULT_POOL: Final = "default"
_FIELDS: Final = frozenset({"namespace", "name", "spec"})
_REAPPLY_SECONDS: Final = 300.0
_REAPPLY_MISSING_SECONDS: Final = 10.0
"""A pool that is missing although it was applied may be about to be deleted."""
_RETRY_SECONDS: Final = 10.0
_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class ConfiguredPool:
    """A pool that should exist."""

    namespace: str
    name: str
    spec: Mapping[str, Any]

    @property
    def manifest(self) -> dict[str, Any]:
        """The WorkerPool to apply."""
        return {
            "apiVersion": API_VERSION,
            "kind": "WorkerPool",
            "metadata": {"name": self.name, "namespace": self.namespace},
            "spec": dict(self.spec),
        }


def configured_pools(path: pathlib.Path | None) -> Sequence[ConfiguredPool]:
    """Read a list of {namespace, name, spec}; invalid entries are logged and left out."""
    return [] if path is None else _parse_pools(path, _read(path))


def default_pool(path: pathlib.Path | None, namespace: str) -> ConfiguredPool | None:
    """Read the spec of the pool `default`; None if none is valid."""
    pool = None if path is None else _parse_default(path, _read(path))
    return None if pool is None else dataclasses.replace(pool, namespace=namespace)


def _read(path: pathlib.Path) -> bytes | str:
    """Return the content of a file, or as text why it cannot be read."""
    try:
        return path.read_bytes()
    except OSError as error:
        return str(error.strerror)


# Cached by content, so that an error is logged once and not in every round.
@functools.lru_cache(maxsize=2)
def _parse_pools(path: pathlib.Path, content: bytes | str) -> Sequence[ConfiguredPool]:
    entries: list[Any] = []
    for value in _documents(path, content):
        if isinstance(value, list):
            entries += value
        elif value is not None:
            found = problems.describe_value(value)
            _log.warning("pools file is not a list", file=str(path), found=found)
    return list(_valid(path, entries))


@functools.lru_cache(maxsize=2)
def _parse_default(path: pathlib.Path, content: bytes | str) -> ConfiguredPool | None:
    entries = [{"name": DEFAULT_POOL, "spec": spec} for spec in _documents(path, content)]
    return next(_valid(path, entries), None)


def _documents(path: pathlib.Path, content: bytes | str) -> Iterator[Any]:
    if isinstance(content, str):
        _log.warning("file not read", file=str(path), error=content)
        return
    for document in yaml_reader.read_documents(content):
        for problem in document.problems:
            _log.warning("file not read", error=problem.format(str(path)))
        if not document.problems:
            yield document.value


def _valid(path: pathlib.Path, entries: Sequence[Any]) -> Iterator[ConfiguredPool]:
    for number, entry in enumerate(entries):
        if not isinstance(entry, dict) or not entry.keys() <= _FIELDS or "name" not in entry:
            fields = sorted(_FIELDS)
            _log.warning("configured pool ignored", file=str(path), number=number, fields=fields)
            continue
        metadata = {"name": entry["name"], "namespace": entry.get("namespace", "default")}
        raw = {"apiVersion": API_VERSION, "kind": "WorkerPool", "metadata": metadata}
        spec = entry.get("spec") or {}
        try:
            WorkerPool.parse(raw | {"spec": spec})
        except pydantic.ValidationError as error:
            message = describe_errors(error)
            _log.warning("configured pool ignored", file=str(path), message=message, **metadata)
        else:
            yield ConfiguredPool(metadata["namespace"], metadata["name"], spec)


def describe_errors(error: pydantic.ValidationError) -> str:
    """Return everything that is wrong with a pool, in one line."""
    found, more = problems.explain(error, WorkerPool)
    lines = [f"{problems.format_path(path)}: {message}" for path, message in found]
    return "; ".join([*lines, *([f"and {more:,} more"] if more else [])])


class PoolCreator:
    """Applies configured pools and creates `default` pools."""

    def __init__(self, deps: PoolDependencies) -> None:
        self._deps = deps
        self._applied: dict[Name, tuple[ConfiguredPool, float]] = {}
        self._problems: dict[Name, tuple[StatusReason, float]] = {}

    async def create_missing(self, existing: AbstractSet[Name], needed: AbstractSet[Name]) -> None:
        """Apply the configured pools, and create `default` where jobs need it."""
        config = self._deps.config
        for pool in configured_pools(config.pools_file):
            if not self._deps.covers(pool.namespace):
                self._ignore(pool)
            elif not self._is_applied(pool, existing):
                await self._write(pool, self._apply)
        for namespace, name in sorted(needed - existing):
            if name == DEFAULT_POOL and self._deps.covers(namespace):
                default = default_pool(config.default_pool_file, namespace)
                if default is not None:
                    await self._write(default, self._create)

    def missing_reason(self, namespace: str, name: str) -> StatusReason | None:
        """Return why a pool does not exist; None if it is about to be created."""
        if not self._deps.covers(namespace):
            return None
        if (problem := self._problems.get((namespace, name))) is not None:
            return problem[0]
        is_created = name == DEFAULT_POOL and self._deps.config.default_pool_file is not None
        return None if is_created else conditions.pool_not_found(namespace, name)

    def _is_applied(self, pool: ConfiguredPool, existing: AbstractSet[Name]) -> bool:
        name = pool.namespace, pool.name
        applied, at = self._applied.get(name, (None, 0.0))
        period = _REAPPLY_SECONDS if name in existing else _REAPPLY_MISSING_SECONDS
        return applied == pool and self._deps.clock.monotonic() < at + period

    def _ignore(self, pool: ConfiguredPool) -> None:
        name = pool.namespace, pool.name
        if name not in self._applied:
            _log.warning("configured pool ignored: its namespace is not watched", pool=name)
        self._applied[name] = pool, 0.0

    async def _write(
        self, pool: ConfiguredPool, write: Callable[[ConfiguredPool], Awaitable[None]]
    ) -> None:
        name, now = (pool.namespace, pool.name), self._deps.clock.monotonic()
        before, retry_at = self._problems.get(name, (None, 0.0))
        if now < retry_at:
            return
        try:
            await write(pool)
        except api_errors.ConflictError:
            # It exists by now.
            return
        except errors.WorkronError as error:
            problem = self._problem(pool, error)
            if problem != before:
                _log.warning("pool not created", pool=name, error=str(error))
            self._problems[name] = problem, now + _RETRY_SECONDS
        else:
            _log.info("pool created", pool=name)
            self._problems.pop(name, None)

    async def _apply(self, pool: ConfiguredPool) -> None:
        path = resources.WORKERPOOLS.at(pool.namespace, pool.name)
        await self._deps.api.apply(path, pool.manifest)
        self._applied[pool.namespace, pool.name] = pool, self._deps.clock.monotonic()

    async def _create(self, pool: ConfiguredPool) -> None:
        await self._deps.api.create(resources.WORKERPOOLS.at(pool.namespace), pool.manifest)

    def _problem(self, pool: ConfiguredPool, error: errors.WorkronError) -> StatusReason:
        command = self._deps.config.enable_command(pool.namespace)
        problem = conditions.reason_for_error(error, pool.namespace, command)
        return problem or conditions.pool_not_found(pool.namespace, pool.name)
