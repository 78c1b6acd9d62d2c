"""Reads a list in parts, each until it is answered, and never takes a mixture for a whole.

Called by who compares all objects with all rows: what is missing in a complete list is gone.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from workron_controller.api import errors

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from workron_controller.api.place import Place
    from workron_controller.api.retrying import Retrying
    from workron_controller.api.server import Server

_CHUNK: Final = 500
_BEGINNINGS: Final = 3
"""A list that expires more often than this takes longer than the server remembers."""


@dataclass(frozen=True, slots=True)
class Page:
    """A part of a list."""

    items: list[dict[str, Any]]
    version: str
    """Of the list; the same on every page since the first."""
    is_first: bool
    """What came before it is void: the list has begun, or begun anew."""
    is_last: bool
    """Only now what came since the first is all there is."""


@dataclass(frozen=True, slots=True)
class Choice:
    """Which objects of a collection, as selectors of the API; empty for all."""

    labels: str = ""
    fields: str = ""

    @property
    def parameters(self) -> dict[str, str]:
        """What a request says of it."""
        said = {"labelSelector": self.labels, "fieldSelector": self.fields}
        return {key: value for key, value in said.items() if value}


async def pages(
    server: Server,
    retrying: Retrying,
    place: Place,
    choice: Choice | None = None,
    chunk: int = _CHUNK,
) -> AsyncIterator[Page]:
    """Read all objects of a collection; where a page has `is_first`, forget those before it.

    Raises what stays away for longer than there is patience, and GoneError when the server has
    forgotten the list too often: of what was not read nothing is known then.
    """
    wanted = {**(choice or Choice()).parameters, "limit": str(chunk)}
    for beginning in range(1, _BEGINNINGS + 1):
        try:
            async for page in _once(server, retrying, place, wanted):
                yield page
        except errors.GoneError:
            if beginning == _BEGINNINGS:
                raise
        else:
            return


async def _once(
    server: Server, retrying: Retrying, place: Place, wanted: Mapping[str, str]
) -> AsyncIterator[Page]:
    more: str | None = None
    while more != "":
        where = {"continue": more} if more else {}
        answer = await retrying(functools.partial(server.part, place, {**wanted, **where}))
        about, is_first = answer["metadata"], more is None
        more = about.get("continue") or ""
        yield Page(answer["items"], about["resourceVersion"], is_first, is_last=not more)
