"""Makes the pools that nobody applied: those of the chart's values, and `default` where wanted.

Called by `keeper`. What it makes are WorkerPools like any other: who edits or deletes one has the
last word, except for what the values say.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import structlog

from workron.core import errors
from workron_controller import resources
from workron_controller.api import errors as api_errors
from workron_controller.pools import asked, verdicts

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from collections.abc import Set as AbstractSet

    from workron_controller.objects import Why
    from workron_controller.pools.asked import Asked
    from workron_controller.pools.tending import Around

    Name = tuple[str, str]

_AGAIN_SECONDS: Final = 300.0
_MISSED_SECONDS: Final = 10.0
"""One that is not seen although it was made may be about to be deleted."""
_DENIED_SECONDS: Final = 10.0

_log = structlog.get_logger(__name__)


class Founding:
    """Which were made, and which could not be."""

    def __init__(self, around: Around) -> None:
        self._around = around
        self._said: dict[Name, tuple[Asked, float]] = {}
        self._troubles: dict[Name, tuple[Why, float]] = {}

    async def found(self, there: AbstractSet[Name], wanted: AbstractSet[Name]) -> None:
        """Have what the values name be as they say, and make `default` where it is wanted."""
        settings = self._around.settings
        for one in asked.pools(settings.asked):
            if not self._covers(one.namespace):
                self._complain(one)
            elif not self._is_as_said(one, there):
                await self._make(one, self._apply)
        for namespace, pool in sorted(wanted - there):
            if pool == asked.DEFAULT and self._covers(namespace):
                default = asked.default(settings.template, namespace)
                if default is not None:
                    await self._make(default, self._create)

    def hint(self, namespace: str, pool: str) -> Why | None:
        """Say why a pool is not there, unless it is about to be made."""
        if not self._covers(namespace):
            return None
        if (trouble := self._troubles.get((namespace, pool))) is not None:
            return trouble[0]
        is_made = pool == asked.DEFAULT and self._around.settings.template is not None
        return None if is_made else verdicts.not_found(namespace, pool)

    def _covers(self, namespace: str) -> bool:
        return not self._around.namespaces or namespace in self._around.namespaces

    def _is_as_said(self, one: Asked, there: AbstractSet[Name]) -> bool:
        name = one.namespace, one.name
        said, at = self._said.get(name, (None, 0.0))
        rest = _AGAIN_SECONDS if name in there else _MISSED_SECONDS
        return said == one and self._around.clock.monotonic() < at + rest

    def _complain(self, one: Asked) -> None:
        name = one.namespace, one.name
        if name not in self._said:
            _log.warning("pool is not made: its namespace is not watched", pool=name)
        self._said[name] = one, 0.0

    async def _make(self, one: Asked, how: Callable[[Asked], Awaitable[None]]) -> None:
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

    async def _apply(self, one: Asked) -> None:
        place = resources.POOLS.at(one.namespace, one.name)
        await self._around.api.apply(place, one.manifest)
        self._said[one.namespace, one.name] = one, self._around.clock.monotonic()

    async def _create(self, one: Asked) -> None:
        await self._around.api.create(resources.POOLS.at(one.namespace), one.manifest)

    def _why(self, one: Asked, error: errors.WorkronError) -> Why:
        enabling = self._around.settings.enabling(one.namespace)
        why = verdicts.of_error(error, one.namespace, enabling)
        return why or verdicts.not_found(one.namespace, one.name)
