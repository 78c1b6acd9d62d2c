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
from workron.store.api import MaintainerStore, OperatorStore
from workron.store.types import PoolGrant
from workron_controller.jobs.cache import StatusReason
from workron_controller.workerpools import autoscaler, conditions, manifests, rollout
from workron_controller.workerpools.autoscaler import ScaleDownDelay
from workron_controller.workerpools.cluster_state import PoolCluster, PoolCredentials
from workron_controller.workerpools.observed import ObservedPool
from workron_controller.workerpools.rollout import ChoosePodToDelete, RolloutTarget
from workron_controller.workerpools.status import PoolStatusWriter

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from typing import Any

    from workron.core.clock import Clock
    from workron.core.model.workerpool import WorkerPoolSpec
    from workron.store.types import WorkerRow
    from workron_controller.kube.client import RetryingCalls
    from workron_controller.kube.events import KubernetesEvent
    from workron_controller.workerpools.autoscaler import ConnectionBudget
    from workron_controller.workerpools.cluster_state import PoolApiClient
    from workron_controller.workerpools.config import PoolSettings
    from workron_controller.workerpools.manifests import PoolNames
    from workron_controller.workerpools.observed import ObservedPod
    from workron_controller.workerpools.rollout import RolloutStep
    from workron_controller.workerpools.snapshot import PoolView


_READMITTED_SECONDS: Final = 300.0
"""A database that was restored may lack a role or a token that it had."""

_log = structlog.get_logger(__name__)


class PoolStore(OperatorStore, MaintainerStore, Protocol):
    """What of a store is needed here."""

    url: str


@dataclass(frozen=True, slots=True)
class ReconcilerDependencies:
    """What all pools are tended with."""

    api: PoolApiClient
    retrying: RetryingCalls
    """Of little patience: a look that fails is taken again soon."""
    store: PoolStore
    budget: ConnectionBudget
    settings: PoolSettings
    namespaces: Collection[str]
    """Whose pools are looked after; none: those of all."""
    clock: Clock
    leave: Callable[[KubernetesEvent], None]
    """Has a person be told of something; never waits."""


class PoolReconciler:
    """One pool, for as long as there is one with its uid."""

    def __init__(self, pool: PoolNames, around: ReconcilerDependencies) -> None:
        self.pool = pool
        self.trouble: StatusReason | None = None
        self.is_refused = False
        """Whether what was asked last was refused, so that to ask again at once is in vain."""
        self.sight = ObservedPool()
        self._around = around
        self._ground = PoolCluster(around.api, around.retrying, pool)
        self._teller = PoolStatusWriter(pool, self._ground, around.clock, around.leave)
        self._patience: ScaleDownDelay | None = None
        self._admitted: tuple[int, float] | None = None
        self._doubts = 0
        self._log = _log.bind(namespace=pool.namespace, pool=pool.name)

    def wants(self, spec: WorkerPoolSpec, needed: int, present: int) -> int:
        """Say how many workers it should have; those that are there are not sent off at once."""
        now = self._around.clock.monotonic()
        if self._patience is None:
            self._patience = ScaleDownDelay(present, now)
        return self._patience.most(spec, needed, now)

    async def tend(self, view: PoolView) -> None:
        """Do what is to be done now, and tell how it stands."""
        self.is_refused = False
        try:
            trouble = await self._work(view)
        except errors.WorkronError as error:
            enabling = self._around.settings.enabling(self.pool.namespace)
            trouble = conditions.condition_of_error(error, self.pool.namespace, enabling)
            self.is_refused = trouble is not None and not conditions.is_transient(trouble)
        if trouble is not None and trouble != self.trouble:
            self._log.warning("pool has trouble", **dataclasses.asdict(trouble))
        self.trouble = trouble
        wanted = self._around.budget.share(self.pool)
        await self._teller.tell(view, self.sight, wanted, trouble)

    def doubt(self) -> None:
        """Let its workers in again, whatever was done before, or is being done."""
        self._admitted = None
        self._doubts += 1

    async def _work(self, view: PoolView) -> StatusReason | None:
        if view.trouble is not None:
            return view.trouble
        if isinstance(view.spec, StatusReason):
            return view.spec
        self.sight = await self._ground.look()
        await self._bury(view.staff)
        if self._around.budget.share(self.pool) or self.sight.sets:
            await self._admit(view.spec, view.generation)
        await self._step(view.spec, view.staff)
        return conditions.condition_of_pods(self.sight) or self._over_budget()

    async def _bury(self, staff: Sequence[WorkerRow]) -> None:
        """Take back what dead workers held, and only then remove what is left of them."""
        for pod in self.sight.pods:
            workers = [worker for worker in staff if worker.name == pod.uid]
            proof = await self._proof(pod) if workers else None
            if proof is not None:
                self._log.warning("worker is dead", pod=pod.name, proof=proof)
                for worker in workers:
                    await self._around.store.reap(worker.worker, version=None)
            if proof is not None or (pod.is_over and not workers):
                await self._ground.bury(pod)

    async def _proof(self, pod: ObservedPod) -> str | None:
        """Say what proves that nothing of a pod runs any more, if anything does."""
        proof = rollout.proven_by_kubelet(pod)
        if proof is None and pod.node is not None and not pod.is_ready:
            # Where a node is lost, no pod is ready for long.
            proof = rollout.proven_by_node(pod.node, await self._ground.node(pod.node))
        return proof

    async def _admit(self, spec: WorkerPoolSpec, generation: int) -> None:
        """Let its workers into the store, as they were let in before if that is known."""
        now = self._around.clock.monotonic()
        if self._is_admitted(generation, now):
            return
        doubts = self._doubts
        kept = await self._ground.credentials()
        admission = self._admission(spec, kept)
        admitted = await self._around.store.grant_pool(admission)
        self._around.budget.learn(admitted.connections)
        renewed = PoolCredentials(admitted.url, admission.token)
        if renewed != kept:
            await self._ground.keep(renewed)
            self._log.info("pool is let into the store", role_is_shared=admission.password is None)
        if doubts == self._doubts:
            self._admitted = generation, now

    def _is_admitted(self, generation: int, now: float) -> bool:
        if self._admitted is None or conditions.is_starving(self.sight):
            return False
        before, at = self._admitted
        return before == generation and now < at + _READMITTED_SECONDS

    def _admission(self, spec: WorkerPoolSpec, kept: PoolCredentials | None) -> PoolGrant:
        password = None
        if not self._around.settings.is_role_shared:
            # That of our own role is for nobody else.
            own = kept and kept.url != self._around.store.url and kept.password
            password = own or secrets.token_urlsafe()
        most = spec.max_replicas if spec.replicas is None else spec.replicas
        return PoolGrant(
            namespace=self.pool.namespace,
            pool=self.pool.name,
            token=kept.token if kept else secrets.token_urlsafe(),
            lease_seconds=spec.lease.total_seconds(),
            password=password,
            # Those that are to end need theirs until they have.
            connections=autoscaler.role_connection_limit(max(most, self.sight.present)),
        )

    async def _step(self, spec: WorkerPoolSpec, staff: Sequence[WorkerRow]) -> None:
        # What there is to share is known by now.
        budget, pool = self._around.budget, self.pool
        url = self._around.store.url
        template = manifests.pod_template(pool, spec, self._around.settings.image, url)
        aim = RolloutTarget(manifests.revision(template), budget.share(pool), budget.room(pool))
        steps = rollout.plan_rollout(self.sight, staff, aim)
        # Before anything is waited for, so that no other pool is given the same room.
        budget.note(pool, rollout.remaining_after(self.sight, steps))
        for step in steps:
            await self._take(step, template)

    async def _take(self, step: RolloutStep, template: Mapping[str, Any]) -> None:
        if isinstance(step, ChoosePodToDelete):
            for worker in step.workers:
                await self._around.store.drain(worker.worker)
        await self._ground.carry_out(step, template)
        self._log.info("pool changes", **_told(step))

    def _over_budget(self) -> StatusReason | None:
        budget = self._around.budget
        wanted, share = budget.wanted(self.pool), budget.share(self.pool)
        if budget.most is None or share >= wanted:
            return None
        return conditions.over_budget(wanted, share, budget.most)


def _told(step: RolloutStep) -> Mapping[str, object]:
    return {"step": type(step).__name__.lower()} | {
        name: getattr(value, "name", value)
        for name in ("set", "pod", "replicas")
        if (value := getattr(step, name, None)) is not None
    }
