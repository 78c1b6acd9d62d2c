"""Tends one pool: sees what there is of it, buries the dead, lets it in, and takes the next steps.

Made by `keeper` for each pool, and called by it again and again. What it remembers is of use and no
more: how many workers were needed lately, and when it looked.
"""

from __future__ import annotations

import dataclasses
import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

import structlog

from workron.core import errors
from workron.store.protocol import Admission, MaintainerDoor, OperatorDoor
from workron_controller.objects import Why
from workron_controller.pools import budget as budgets
from workron_controller.pools import draining, proofs, shape, verdicts
from workron_controller.pools.draining import Aim, Choose
from workron_controller.pools.ground import Credentials, Ground
from workron_controller.pools.scale import Patience
from workron_controller.pools.sight import Sight
from workron_controller.pools.telling import Teller

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from typing import Any

    from workron.core.model.pool import WorkerPoolSpec
    from workron.core.ports import Clock
    from workron.store.protocol import WorkerRow
    from workron_controller.api.retrying import Retrying
    from workron_controller.pools.budget import Budget
    from workron_controller.pools.draining import Step
    from workron_controller.pools.ground import Api
    from workron_controller.pools.settings import Settings
    from workron_controller.pools.shape import Pool
    from workron_controller.pools.sight import Pod
    from workron_controller.pools.view import View
    from workron_controller.telling.notices import Notice

_READMITTED_SECONDS: Final = 300.0
"""A database that was restored may lack a role or a token that it had."""

_log = structlog.get_logger(__name__)


class Doors(OperatorDoor, MaintainerDoor, Protocol):
    """What of a store is needed here."""

    url: str


@dataclass(frozen=True, slots=True)
class Around:
    """What all pools are tended with."""

    api: Api
    retrying: Retrying
    """Of little patience: a look that fails is taken again soon."""
    store: Doors
    budget: Budget
    settings: Settings
    namespaces: Collection[str]
    """Whose pools are looked after; none: those of all."""
    clock: Clock
    leave: Callable[[Notice], None]
    """Has a person be told of something; never waits."""


class Tending:
    """One pool, for as long as there is one with its uid."""

    def __init__(self, pool: Pool, around: Around) -> None:
        self.pool = pool
        self.trouble: Why | None = None
        self.is_refused = False
        """Whether what was asked last was refused, so that to ask again at once is in vain."""
        self.sight = Sight()
        self._around = around
        self._ground = Ground(around.api, around.retrying, pool)
        self._teller = Teller(pool, self._ground, around.clock, around.leave)
        self._patience: Patience | None = None
        self._admitted: tuple[int, float] | None = None
        self._doubts = 0
        self._log = _log.bind(namespace=pool.namespace, pool=pool.name)

    def wants(self, spec: WorkerPoolSpec, needed: int, present: int) -> int:
        """Say how many workers it should have; those that are there are not sent off at once."""
        now = self._around.clock.monotonic()
        if self._patience is None:
            self._patience = Patience(present, now)
        return self._patience.most(spec, needed, now)

    async def tend(self, view: View) -> None:
        """Do what is to be done now, and tell how it stands."""
        self.is_refused = False
        try:
            trouble = await self._work(view)
        except errors.WorkronError as error:
            enabling = self._around.settings.enabling(self.pool.namespace)
            trouble = verdicts.of_error(error, self.pool.namespace, enabling)
            self.is_refused = trouble is not None and not verdicts.passes(trouble)
        if trouble is not None and trouble != self.trouble:
            self._log.warning("pool has trouble", **dataclasses.asdict(trouble))
        self.trouble = trouble
        wanted = self._around.budget.share(self.pool)
        await self._teller.tell(view, self.sight, wanted, trouble)

    def doubt(self) -> None:
        """Let its workers in again, whatever was done before, or is being done."""
        self._admitted = None
        self._doubts += 1

    async def _work(self, view: View) -> Why | None:
        if view.trouble is not None:
            return view.trouble
        if isinstance(view.spec, Why):
            return view.spec
        self.sight = await self._ground.look()
        await self._bury(view.staff)
        if self._around.budget.share(self.pool) or self.sight.sets:
            await self._admit(view.spec, view.generation)
        await self._step(view.spec, view.staff)
        return verdicts.of_sight(self.sight) or self._over_budget()

    async def _bury(self, staff: Sequence[WorkerRow]) -> None:
        """Take back what dead workers held, and only then remove what is left of them."""
        for pod in self.sight.pods:
            workers = [worker for worker in staff if worker.name == pod.uid]
            proof = await self._proof(pod) if workers else None
            if proof is not None:
                self._log.warning("worker is dead", pod=pod.name, proof=proof)
                for worker in workers:
                    await self._around.store.reap(worker.worker, sign=None)
            if proof is not None or (pod.is_over and not workers):
                await self._ground.bury(pod)

    async def _proof(self, pod: Pod) -> str | None:
        """Say what proves that nothing of a pod runs any more, if anything does."""
        proof = proofs.of_kubelet(pod)
        if proof is None and pod.node is not None and not pod.is_ready:
            # Where a node is lost, no pod is ready for long.
            proof = proofs.of_node(pod.node, await self._ground.node(pod.node))
        return proof

    async def _admit(self, spec: WorkerPoolSpec, generation: int) -> None:
        """Let its workers into the store, as they were let in before if that is known."""
        now = self._around.clock.monotonic()
        if self._is_admitted(generation, now):
            return
        doubts = self._doubts
        kept = await self._ground.credentials()
        admission = self._admission(spec, kept)
        admitted = await self._around.store.admit(admission)
        self._around.budget.learn(admitted.connections)
        renewed = Credentials(admitted.url, admission.token)
        if renewed != kept:
            await self._ground.keep(renewed)
            self._log.info("pool is let into the store", role_is_shared=admission.password is None)
        if doubts == self._doubts:
            self._admitted = generation, now

    def _is_admitted(self, generation: int, now: float) -> bool:
        if self._admitted is None or verdicts.starves(self.sight):
            return False
        before, at = self._admitted
        return before == generation and now < at + _READMITTED_SECONDS

    def _admission(self, spec: WorkerPoolSpec, kept: Credentials | None) -> Admission:
        password = None
        if not self._around.settings.is_role_shared:
            # That of our own role is for nobody else.
            own = kept and kept.url != self._around.store.url and kept.password
            password = own or secrets.token_urlsafe()
        most = spec.max_replicas if spec.replicas is None else spec.replicas
        return Admission(
            namespace=self.pool.namespace,
            pool=self.pool.name,
            token=kept.token if kept else secrets.token_urlsafe(),
            lease_seconds=spec.lease.total_seconds(),
            password=password,
            # Those that are to end need theirs until they have.
            connections=budgets.for_role(max(most, self.sight.present)),
        )

    async def _step(self, spec: WorkerPoolSpec, staff: Sequence[WorkerRow]) -> None:
        # What there is to share is known by now.
        budget, pool = self._around.budget, self.pool
        url = self._around.store.url
        template = shape.template(pool, spec, self._around.settings.image, url)
        aim = Aim(shape.revision(template), budget.share(pool), budget.room(pool))
        steps = draining.plan(self.sight, staff, aim)
        # Before anything is waited for, so that no other pool is given the same room.
        budget.note(pool, draining.present(self.sight, steps))
        for step in steps:
            await self._take(step, template)

    async def _take(self, step: Step, template: Mapping[str, Any]) -> None:
        if isinstance(step, Choose):
            for worker in step.workers:
                await self._around.store.drain(worker.worker)
        await self._ground.carry_out(step, template)
        self._log.info("pool changes", **_told(step))

    def _over_budget(self) -> Why | None:
        budget = self._around.budget
        wanted, share = budget.wanted(self.pool), budget.share(self.pool)
        if budget.most is None or share >= wanted:
            return None
        return verdicts.over_budget(wanted, share, budget.most)


def _told(step: Step) -> Mapping[str, object]:
    return {"step": type(step).__name__.lower()} | {
        name: getattr(value, "name", value)
        for name in ("set", "pod", "replicas")
        if (value := getattr(step, name, None)) is not None
    }
