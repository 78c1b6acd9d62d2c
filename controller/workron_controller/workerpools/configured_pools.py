"""Creates the pools of the installation: those of the chart's values, and `default` on demand.

The files are mounted from a ConfigMap, which changes while the controller runs, so they are read in
every round. An error in one pool is logged once and does not affect the others.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, Final

import pydantic
import structlog

from workron.core import errors
from workron.core.manifest import problems, yaml_reader
from workron.core.model.meta import API_VERSION
from workron.core.model.workerpool import WorkerPool
from workron_controller.kube import errors as api_errors
from workron_controller.kube import resources
from workron_controller.workerpools import manifests, status

if TYPE_CHECKING:
    import pathlib
    from collections.abc import Iterator, Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from workron_controller.kube.conditions import StatusReason
    from workron_controller.workerpools.config import PoolDependencies
    from workron_controller.workerpools.manifests import PoolName

    Manifest = Mapping[str, Any]


DEFAULT_POOL: Final = "default"
_FIELDS: Final = frozenset({"namespace", "name", "spec"})
_REAPPLY_SECONDS: Final = 300.0
_REAPPLY_MISSING_SECONDS: Final = 10.0
"""A pool that is missing although it was applied may be about to be deleted."""
_RETRY_SECONDS: Final = 10.0

_log = structlog.get_logger(__name__)


def configured_pools(path: pathlib.Path | None) -> Sequence[Manifest]:
    """Read a list of {namespace, name, spec}; invalid entries are logged and left out."""
    return _read(path, is_list=True)


def default_pool(path: pathlib.Path | None, namespace: str) -> Manifest | None:
    """Read the spec of the pool `default`; None if none is valid."""
    for pool in _read(path, is_list=False):
        return {**pool, "metadata": {**pool["metadata"], "namespace": namespace}}
    return None


def _read(path: pathlib.Path | None, *, is_list: bool) -> Sequence[Manifest]:
    if path is None:
        return []
    try:
        content: bytes | str = path.read_bytes()
    except OSError as error:
        content = str(error.strerror)
    return _parse(path, content, is_list=is_list)


# Cached by content, so that an error is logged once and not in every round.
@functools.lru_cache(maxsize=4)
def _parse(path: pathlib.Path, content: bytes | str, *, is_list: bool) -> Sequence[Manifest]:
    """Parse a file; instead of its content, a text says why it cannot be read."""
    entries: list[Any] = []
    for value in _documents(path, content):
        if not is_list:
            entries.append({"name": DEFAULT_POOL, "spec": value})
        elif isinstance(value, list):
            entries += value
        elif value is not None:
            found = problems.describe_value(value)
            _log.warning("pools file is not a list", file=str(path), found=found)
    return list(_valid(path, entries))


def _documents(path: pathlib.Path, content: bytes | str) -> Iterator[Any]:
    if isinstance(content, str):
        _log.warning("file not read", file=str(path), error=content)
        return
    for document in yaml_reader.read_documents(content):
        for problem in document.problems:
            _log.warning("file not read", error=problem.format(str(path)))
        if not document.problems:
            yield document.value


def _valid(path: pathlib.Path, entries: Sequence[Any]) -> Iterator[Manifest]:
    for number, entry in enumerate(entries):
        if not isinstance(entry, dict) or not entry.keys() <= _FIELDS or "name" not in entry:
            fields = sorted(_FIELDS)
            _log.warning("configured pool ignored", file=str(path), number=number, fields=fields)
            continue
        metadata = {"name": entry["name"], "namespace": entry.get("namespace", "default")}
        spec = entry.get("spec") or {}
        pool = {"apiVersion": API_VERSION, "kind": "WorkerPool", "metadata": metadata, "spec": spec}
        try:
            WorkerPool.parse(pool)
        except pydantic.ValidationError as error:
            message = describe_errors(error)
            _log.warning("configured pool ignored", file=str(path), message=message, **metadata)
        else:
            yield pool


def describe_errors(error: pydantic.ValidationError) -> str:
    """Return everything that is wrong with a pool, in one line."""
    found, more = problems.explain(error, WorkerPool)
    lines = [f"{problems.format_path(path)}: {message}" for path, message in found]
    return "; ".join([*lines, *([f"and {more:,} more"] if more else [])])


class PoolCreator:
    """Applies configured pools and creates `default` pools."""

    def __init__(self, deps: PoolDependencies) -> None:
        self._deps = deps
        self._applied: dict[PoolName, tuple[Manifest, float]] = {}
        self._problems: dict[PoolName, tuple[StatusReason, float]] = {}

    async def create_missing(
        self, existing: AbstractSet[PoolName], needed: AbstractSet[PoolName]
    ) -> None:
        """Apply the configured pools, and create `default` where jobs need it."""
        config = self._deps.config
        for pool in configured_pools(config.pools_file):
            name = manifests.name_of(pool)
            if not self._deps.covers(name[0]):
                if name not in self._applied:
                    _log.warning("configured pool ignored: its namespace is not watched", pool=name)
                self._applied[name] = pool, 0.0
            elif not self._is_applied(pool, existing):
                await self._write(pool, may_exist=True)
        for namespace, pool_name in sorted(needed - existing):
            if pool_name == DEFAULT_POOL and self._deps.covers(namespace):
                default = default_pool(config.default_pool_file, namespace)
                if default is not None:
                    await self._write(default, may_exist=False)

    def missing_reason(self, namespace: str, name: str) -> StatusReason | None:
        """Return why a pool does not exist; None if it is about to be created."""
        if not self._deps.covers(namespace):
            return None
        if (problem := self._problems.get((namespace, name))) is not None:
            return problem[0]
        is_created = name == DEFAULT_POOL and self._deps.config.default_pool_file is not None
        return None if is_created else status.pool_not_found(namespace, name)

    def _is_applied(self, pool: Manifest, existing: AbstractSet[PoolName]) -> bool:
        name = manifests.name_of(pool)
        applied, at = self._applied.get(name, (None, 0.0))
        period = _REAPPLY_SECONDS if name in existing else _REAPPLY_MISSING_SECONDS
        return applied == pool and self._deps.clock.monotonic() < at + period

    async def _write(self, pool: Manifest, *, may_exist: bool) -> None:
        name, now = manifests.name_of(pool), self._deps.clock.monotonic()
        before, retry_at = self._problems.get(name, (None, 0.0))
        if now < retry_at:
            return
        try:
            if may_exist:
                await self._deps.api.apply(resources.WORKERPOOLS.at(*name), pool)
                self._applied[name] = pool, now
            else:
                await self._deps.api.create(resources.WORKERPOOLS.at(name[0]), pool)
        except api_errors.ConflictError:
            # It exists by now.
            return
        except errors.WorkronError as error:
            controller_namespace = self._deps.config.namespace
            problem = status.reason_for_error(error, name[0], controller_namespace)
            problem = problem or status.pool_not_found(*name)
            if problem != before:
                _log.warning("pool not created", pool=name, error=str(error))
            self._problems[name] = problem, now + _RETRY_SECONDS
        else:
            _log.info("pool created", pool=name)
            self._problems.pop(name, None)
