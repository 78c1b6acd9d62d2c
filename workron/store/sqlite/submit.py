"""The door for what people and the operator ask for: submit, cancel, hold, resume, ensure_pool.

One of the doors of `store`; `planting` stores a plan's rows, `binding` ties roots to each other.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from workron.core import ids
from workron.core.ids import JobId
from workron.store.protocol import Submitted
from workron.store.sqlite import binding, micros, planting, settling, sweeping, tokens
from workron.store.sqlite.verbs import Verbs
from workron.store.standing import Standing, choose

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from workron.core.plan import Plan
    from workron.store.sqlite.transaction import Transaction


class SubmitVerbs(Verbs):
    """What is asked of the store from above."""

    async def submit(
        self, plans: Sequence[Plan], *, supersedes: bool = False
    ) -> Sequence[Submitted]:
        """Store all plans, or none."""
        bases = [ids.mint_base(self._clock.now(), self._rng) for _ in plans]
        return await self._stir(partial(_submit, plans=plans, bases=bases, supersedes=supersedes))

    async def cancel(self, root: JobId) -> bool:
        """End all of a root that does not run, and mark what runs."""
        return await self._sweep(root, "cancel")

    async def hold(self, root: JobId) -> bool:
        """Suspend all of a root that does not run, and what comes back from running."""
        return await self._sweep(root, "hold")

    async def resume(self, root: JobId) -> bool:
        """Undo `hold`, or a submission as suspended."""
        return await self._sweep(root, "resume")

    async def _sweep(self, root: JobId, verb: str) -> bool:
        if not await self._stir(partial(sweeping.begin, root=root, verb=verb)):
            return False
        while not await self._stir(partial(sweeping.step, root=root)):
            pass
        return True

    async def ensure_pool(
        self, namespace: str, name: str, *, lease_seconds: float | None = None
    ) -> str:
        """Make the pool if it is new, and answer one more token that admits workers to it."""
        token = tokens.mint(self._rng)
        pool = {"namespace": namespace, "name": name}
        await self._write(
            partial(_ensure_pool, pool=pool, token=token, lease_seconds=lease_seconds)
        )
        return token


def _ensure_pool(
    tx: Transaction, pool: Mapping[str, str], token: str, lease_seconds: float | None
) -> None:
    tx.run("ensure_pool.make", **pool)
    tx.run("ensure_pool.lease", lease=lease_seconds, **pool)
    tx.run("ensure_pool.drop_expired")
    expires = tx.now + micros.of_delta(tokens.LIFE)
    tx.run("ensure_pool.admit", hash=tokens.digest(token), expires=expires, **pool)


def _submit(
    tx: Transaction, plans: Sequence[Plan], bases: Sequence[JobId], *, supersedes: bool
) -> list[Submitted]:
    tx.clear()
    submitted = []
    planted = []
    for plan, base in zip(plans, bases, strict=True):
        root = _acknowledge(tx, plan, supersedes=supersedes)
        if root is None:
            planted.append(planting.plant(tx, plan, base))
            submitted.append(Submitted(planted[-1].root, is_new=True, is_held=plan.is_suspended))
        else:
            submitted.append(Submitted(JobId(root["id"]), is_new=False, is_held=bool(root["held"])))
    # Only now do all names of this submission stand.
    for plot in planted:
        binding.bind(tx, plot)
    for plot in planted:
        binding.refuse_cycle(tx, plot)
    settling.conclude(tx)
    return submitted


def _acknowledge(tx: Transaction, plan: Plan, *, supersedes: bool) -> Any:
    """Find the root that this plan already is; None when it is new."""
    known = tx.row("submit.known", uid=str(plan.identity.uid))
    unfinished = tx.row("submit.unfinished", **planting.name_of(plan.identity))
    digest = unfinished and unfinished["digest"]
    return choose(plan, Standing(known, unfinished, digest), supersedes=supersedes)
