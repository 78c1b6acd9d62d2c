"""What a request waits for that the request itself will never bring.

Called by `workron run`, which would wait for it: in memory in vain, elsewhere until somebody else
brings it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from workron.core import errors

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from workron.core.plan import Identity, Kind, Plan
    from workron.store.protocol import ReaderDoor


class Missing(NamedTuple):
    """An upstream that is in none of the files."""

    downstream: Identity
    kind: Kind
    name: str


def missing(plans: Sequence[Plan]) -> Iterator[Missing]:
    """Name every upstream that the plans do not bring themselves."""
    brought = {_key(plan.identity) for plan in plans}
    for plan in plans:
        for one in plan.outside:
            if (plan.identity.namespace, one.kind, one.name) not in brought:
                yield Missing(plan.identity, one.kind, one.name)


def refuse(plans: Sequence[Plan]) -> None:
    """Raise InputError for what could never end where nobody else can do anything."""
    problems = [
        f"{one.downstream.kind} {one.downstream.name!r} depends on {one.kind} {one.name!r}, which"
        " is in none of the files, and nobody else can bring it to a store in memory"
        for one in missing(plans)
    ]
    problems += [
        f"{plan.identity.kind} {plan.identity.name!r} is suspended, and nobody can resume it in a"
        " store in memory: take out `suspend: true`"
        for plan in plans
        if plan.is_suspended
    ]
    if problems:
        raise errors.InputError("\n".join(problems))


async def told(reader: ReaderDoor, plans: Sequence[Plan]) -> list[str]:
    """Say what will be waited for that is not in the store either."""
    lines = [
        f"{one.downstream.name} waits for {one.kind} {one.name!r}, which is not in the store yet"
        for one in missing(plans)
        if await reader.find(one.downstream.namespace, one.kind, one.name) is None
    ]
    lines += [
        f"{plan.identity.name} is suspended: it waits until its file is submitted again"
        " without `suspend: true`"
        for plan in plans
        if plan.is_suspended
    ]
    return lines


def _key(identity: Identity) -> tuple[str, Kind, str]:
    return identity.namespace, identity.kind, identity.name
