"""Reconciles one pool: observe it, reap dead workers, grant access to the store, take next steps.

Everything that matters is in the cluster and in the store. The memory of a reconciler only saves
work: when access was granted last, and how many workers were needed lately.
"""

from __future__ import annotations

import dataclasses
import secrets
from typing import TYPE_CHECKING, Final

import structlog

from workron.core import errors
from workron.store.types import PoolGrant
from workron_controller.kube.conditions import StatusReason
from workron_controller.workerpools import autoscaler, conditions, manifests, rollout
from workron_controller.workerpools.autoscaler import ScaleDownDelay
from workron_controller.workerpools.observed import ObservedPool
from workron_controller.workerpools.pool_client import PoolClient, PoolCredentials
from workron_controller.workerpools.rollout import MarkPodForDeletion, RolloutTarget
from workron_controller.workerpools.status import PoolStatusWriter

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from workron.core.model.workerpool import WorkerPoolSpec
    from workron.store.types import WorkerRow
    from workron_controller.workerpools.config import PoolDependencies
    from workron_controller.workerpools.manifests import PoolNames
    from workron_controller.workerpools.observed import ObservedPod
    from workron_controller.workerpools.pool_input import PoolInput
    from workron_controller.workerpools.rollout import RolloutStep


_REGRANT_SECONDS: Final = 300.0
"""A database that was restored from a backup may lack a role or a token."""

_log = structlog.get_logger(__name__)


class PoolReconciler:
    """One pool, as long as an object with its uid exists."""

    def __init__(self, pool: PoolNames, deps: PoolDependencies) -> None:
        self.pool = pool
        self.problem: StatusReason | None = None
        self.is_rejected = False
        """Whether the last request was rejected, so that the next one soon would be, too."""
        self.observed = ObservedPool()
        self._deps = deps
        self._client = PoolClient(deps.api, deps.retrying, pool)
        self._status = PoolStatusWriter(pool, self._client, deps.clock, deps.record_event)
        self._scale_down: ScaleDownDelay | None = None
        self._granted: tuple[int, float] | None = None
        self._invalidations = 0
        self._log = _log.bind(namespace=pool.namespace, pool=pool.name)

    def desired_replicas(self, spec: WorkerPoolSpec, needed: int, present: int) -> int:
        """Return how many workers the pool should have, idle ones that it keeps included."""
        now = self._deps.clock.monotonic()
        if self._scale_down is None:
            self._scale_down = ScaleDownDelay(present, now)
        return self._scale_down.desired(spec, needed, now)

    async def reconcile(self, given: PoolInput) -> None:
        """Take the next steps and write the status."""
        self.is_rejected = False
        try:
            problem = await self._reconcile(given)
        except errors.WorkronError as error:
            command = self._deps.config.enable_command(self.pool.namespace)
            problem = conditions.reason_for_error(error, self.pool.namespace, command)
            self.is_rejected = problem is not None and not conditions.is_transient(problem)
        if problem is not None and problem != self.problem:
            self._log.warning("pool has a problem", **dataclasses.asdict(problem))
        self.problem = problem
        wanted = self._deps.budget.share(self.pool)
        await self._status.write(given, self.observed, wanted, problem)

    def invalidate_grant(self) -> None:
        """Grant access again, even if a grant is in progress."""
        self._granted = None
        self._invalidations += 1

    async def _reconcile(self, given: PoolInput) -> StatusReason | None:
        if given.problem is not None:
            return given.problem
        if isinstance(given.spec, StatusReason):
            return given.spec
        self.observed = await self._client.observe()
        await self._reap_dead(given.workers)
        if self._deps.budget.share(self.pool) or self.observed.replica_sets:
            await self._grant(given.spec, given.generation)
        await self._roll_out(given.spec, given.workers)
        return conditions.reason_from_pods(self.observed) or self._over_budget()

    async def _reap_dead(self, workers: Sequence[WorkerRow]) -> None:
        """Reap the sessions of dead workers, and only then delete their pods."""
        for pod in self.observed.pods:
            sessions = [worker for worker in workers if worker.name == pod.uid]
            proof = await self._death_proof(pod) if sessions else None
            if proof is not None:
                self._log.warning("worker is dead", pod=pod.name, proof=proof)
                for session in sessions:
                    await self._deps.store.reap(session.worker, version=None)
            if proof is not None or (pod.is_finished and not sessions):
                await self._client.delete_pod(pod)

    async def _death_proof(self, pod: ObservedPod) -> str | None:
        """Return what proves that nothing in a pod runs anymore."""
        proof = rollout.proof_from_pod(pod)
        if proof is None and pod.node is not None and not pod.is_ready:
            # The pods of a lost node become unready, so no others need a look at their node.
            proof = rollout.proof_from_node(pod.node, await self._client.get_node(pod.node))
        return proof

    async def _grant(self, spec: WorkerPoolSpec, generation: int) -> None:
        """Grant the pool access to the store, with the credentials that it has if possible."""
        now = self._deps.clock.monotonic()
        if self._is_granted(generation, now):
            return
        invalidations = self._invalidations
        before = await self._client.read_credentials()
        grant = self._pool_grant(spec, before)
        granted = await self._deps.store.grant_pool(grant)
        self._deps.budget.set_database_limit(granted.connections)
        credentials = PoolCredentials(granted.url, grant.token)
        if credentials != before:
            await self._client.write_credentials(credentials)
            self._log.info("access granted", uses_shared_role=grant.password is None)
        if invalidations == self._invalidations:
            self._granted = generation, now

    def _is_granted(self, generation: int, now: float) -> bool:
        if self._granted is None or conditions.lacks_secret(self.observed):
            return False
        granted_generation, at = self._granted
        return granted_generation == generation and now < at + _REGRANT_SECONDS

    def _pool_grant(self, spec: WorkerPoolSpec, before: PoolCredentials | None) -> PoolGrant:
        password = None
        if not self._deps.config.uses_shared_role:
            # The password of the controller's own role must not become the pool's.
            is_own = before is not None and before.url != self._deps.store.url
            password = (before.password if before and is_own else None) or secrets.token_urlsafe()
        max_workers = spec.max_replicas if spec.replicas is None else spec.replicas
        return PoolGrant(
            namespace=self.pool.namespace,
            pool=self.pool.name,
            token=before.token if before else secrets.token_urlsafe(),
            lease_seconds=spec.lease.total_seconds(),
            password=password,
            # Terminating workers need their connections until they have ended.
            connections=autoscaler.role_connection_limit(
                max(max_workers, self.observed.worker_count)
            ),
        )

    async def _roll_out(self, spec: WorkerPoolSpec, workers: Sequence[WorkerRow]) -> None:
        # After the grant, which has set the limit of the budget.
        budget, pool = self._deps.budget, self.pool
        template = manifests.pod_template(pool, spec, self._deps.config.image, self._deps.store.url)
        target = RolloutTarget(
            manifests.revision(template), budget.share(pool), budget.headroom(pool)
        )
        steps = rollout.plan_rollout(self.observed, workers, target)
        # Before the first await, so that no other pool uses the same headroom.
        budget.set_present(pool, rollout.worker_count_after(self.observed, steps))
        for step in steps:
            await self._apply_step(step, template)

    async def _apply_step(self, step: RolloutStep, template: Mapping[str, Any]) -> None:
        if isinstance(step, MarkPodForDeletion):
            for worker in step.workers:
                await self._deps.store.drain(worker.worker)
        await self._client.apply_step(step, template)
        self._log.info("rollout step applied", **_log_fields(step))

    def _over_budget(self) -> StatusReason | None:
        budget = self._deps.budget
        wanted, share = budget.wanted(self.pool), budget.share(self.pool)
        if budget.max_workers is None or share >= wanted:
            return None
        return conditions.over_budget(wanted, share, budget.max_workers)


def _log_fields(step: RolloutStep) -> Mapping[str, object]:
    return {"step": type(step).__name__} | {
        name: getattr(value, "name", value)
        for name in ("replica_set", "pod", "replicas")
        if (value := getattr(step, name, None)) is not None
    }
