"""Which of two submissions counts: the rule for a plan that is known, or whose name is taken.

Called by `submit` of both dialects with what stands: a root that is stored, or an earlier plan of
the same call.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from workron.core import errors

if TYPE_CHECKING:
    from workron.core.plan import Plan

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Standing(Generic[_T]):
    """What stands where a plan wants to go."""

    known: _T | None
    """Of the same uid."""
    unfinished: _T | None
    """Of the same name, and not at its end."""
    digest: str | None
    """Of what is unfinished."""


def choose(plan: Plan, standing: Standing[_T], *, supersedes: bool) -> _T | None:
    """Give what is there already for this plan; None: it is new. NameTakenError if neither."""
    if standing.known is not None:
        return standing.known
    if standing.unfinished is None:
        return None
    if standing.digest == plan.digest():
        return standing.unfinished
    if supersedes:
        return None
    who = plan.identity
    raise errors.NameTakenError(who.kind, who.namespace, who.name)
