"""Reconciles one pool: observe it, reap dead workers, grant access to the store, take next steps.

Everything that matters is in the cluster and in the store. The memory of a reconciler only saves
work: when access was granted last, and how many workers were needed lately.

Every change of an object names its uid too, so that it never reaches a new object of that name.
"""

from __future__ import annotations

import contextlib
import dataclasses
from typing import TYPE_CHECKING, Any

import structlog

from workron.core import errors
from workron_controller.kube import client, resources
from workron_controller.kube import errors as api_errors
from workron_controller.kube.conditions import StatusReason
from workron_controller.workerpools import autoscaler, manifests, observed, rollout, status
from workron_controller.workerpools.autoscaler import ScaleDownDelay
from workron_controller.workerpools.credentials import PoolCredentials
from workron_controller.workerpools.observed import ObservedPool
from workron_controller.workerpools.rollout import RolloutPlan
from workron_controller.workerpools.status import PoolStatusWriter

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from workron.core.model.workerpool import WorkerPoolSpec
    from workron.store.types import WorkerRow
    from workron_controller.workerpools.config import PoolDependencies
    from workron_controller.workerpools.observed import ObservedPod, PoolInput
    from workron_controller.workerpools.rollout import RolloutStep

    WorkersByPod = Mapping[str, Sequence[WorkerRow]]


_log = structlog.get_logger(__name__)


class PoolReconciler:
    """One pool, as long as an object with its uid exists."""

    def __init__(self, given: PoolInput, deps: PoolDependencies) -> None:
        self.given = given
        """The newest one; a reconciliation keeps the one with which it started."""
        self.pool = pool = given.names
        self.problem: StatusReason | None = None
        self.credentials = PoolCredentials(pool, deps)
        self._deps = deps
        self._status_writer = PoolStatusWriter(pool, deps)
        self._observed = ObservedPool()
        self._scale_down: ScaleDownDelay | None = None
        self._is_rejected = False
        self._quiet_until: tuple[int, float] | None = None
        self._log = _log.bind(namespace=pool.namespace, pool=pool.name)

    def desired_replicas(self) -> int:
        """Return how many workers the pool should have, idle ones that it keeps included."""
        given, now = self.given, self._deps.clock.monotonic()
        present = len(given.workers)
        if isinstance(given.spec, StatusReason):
            return present
        if self._scale_down is None:
            self._scale_down = ScaleDownDelay(present, now)
        # The jobs of draining workers end with them, and need no others.
        running = sum(worker.claims for worker in given.workers if not worker.is_draining)
        needed = autoscaler.desired_replicas(given.spec, given.queued, running)
        return self._scale_down.desired(given.spec, needed, now)

    def is_due(self, quiet_interval: float) -> bool:
        """Return whether to reconcile now; a pool without work to do is reconciled less often."""
        is_idle = not self.given.workers and not self._deps.budget.wanted(self.pool)
        is_quiet = is_idle or self._is_rejected or status.blocks_scaling(self.problem)
        now = self._deps.clock.monotonic()
        if is_quiet and self._quiet_until is not None:
            generation, until = self._quiet_until
            if generation == self.given.generation and now < until:
                return False
        self._quiet_until = self.given.generation, now + quiet_interval
        return True

    async def reconcile(self) -> None:
        """Take the next steps and write the status."""
        given = self.given
        self._is_rejected = False
        try:
            problem = await self._reconcile(given)
        except errors.WorkronError as error:
            problem = status.reason_for_error(
                error, self.pool.namespace, self._deps.config.namespace
            )
            # The next request would soon be rejected too.
            self._is_rejected = problem is not None and not status.is_transient(problem)
        if problem is not None and problem != self.problem:
            self._log.warning("pool has a problem", **dataclasses.asdict(problem))
        self.problem = problem
        wanted, now = self._deps.budget.share(self.pool), self._deps.clock.now()
        written = status.pool_status(given, self._observed, wanted, problem, now)
        await self._status_writer.write(given, written)

    async def _reconcile(self, given: PoolInput) -> StatusReason | None:
        if given.problem is not None:
            return given.problem
        if isinstance(given.spec, StatusReason):
            return given.spec
        workers: dict[str, list[WorkerRow]] = {}
        for worker in given.workers:
            workers.setdefault(worker.name, []).append(worker)
        await self._observe()
        await self._reap_dead(workers)
        if self._deps.budget.share(self.pool) or self._observed.replica_sets:
            await self.credentials.grant(given.spec, given.generation, self._observed)
        await self._roll_out(given.spec, workers)
        return status.reason_from_pods(self._observed) or status.over_budget(
            self._deps.budget, self.pool
        )

    async def _observe(self) -> None:
        api, retrying, labels = self._deps.api, self._deps.retrying, self.pool.selector
        replica_sets, pods = [
            await client.list_all(api, retrying, resource.at(self.pool.namespace), labels)
            for resource in (resources.REPLICA_SETS, resources.PODS)
        ]
        self._observed = observed.observe(self.pool, replica_sets, pods)

    async def _reap_dead(self, workers: WorkersByPod) -> None:
        """Reap the sessions of dead workers, and only then delete their pods."""
        for pod in self._observed.pods:
            sessions = workers.get(pod.uid, ())
            proof = await self._death_proof(pod) if sessions else None
            if proof is not None:
                self._log.warning("worker is dead", pod=pod.name, proof=proof)
                for session in sessions:
                    await self._deps.store.reap(session.worker, version=None)
            if proof is not None or (pod.is_finished and not sessions):
                await self._delete_pod(pod)

    async def _death_proof(self, pod: ObservedPod) -> str | None:
        """Return what proves that nothing in a pod runs anymore."""
        proof = observed.proof_from_pod(pod)
        # The pods of a lost node become unready, so no others need a look at their node.
        if proof is not None or pod.node is None or pod.is_ready:
            return proof
        try:
            node = await self._deps.api.get(resources.NODES.at(name=pod.node))
        except api_errors.ObjectNotFoundError:
            return f"node {pod.node} does not exist"
        except api_errors.ForbiddenError:
            # Access to nodes is optional: it only proves faster that a worker is dead.
            return None
        return f"node {pod.node} is out of service" if observed.is_out_of_service(node) else None

    async def _roll_out(self, spec: WorkerPoolSpec, workers: WorkersByPod) -> None:
        # After the grant, which has set the limit of the budget.
        budget, pool, deps = self._deps.budget, self.pool, self._deps
        template = manifests.pod_template(pool, spec, deps.config.image, deps.store.url)
        revision = manifests.revision(template)
        share, headroom = budget.share(pool), budget.headroom(pool)
        steps = [*RolloutPlan(self._observed, workers, revision, share, headroom).steps()]
        # Before the first await, so that no other pool uses the same headroom.
        budget.set_present(pool, rollout.worker_count_after(self._observed, steps))
        for step in steps:
            await self._apply_step(step, template)
            self._log.info("rollout step applied", **_log_fields(step))

    async def _apply_step(self, step: RolloutStep, template: Mapping[str, Any]) -> None:
        api, sets = self._deps.api, resources.REPLICA_SETS
        match step:
            case rollout.CreateReplicaSet(replicas):
                await self._create(manifests.replica_set(self.pool, template, replicas))
            case rollout.ScaleReplicaSet(one, replicas):
                body = {"metadata": {"uid": one.uid}, "spec": {"replicas": replicas}}
                await api.patch(sets.at(self.pool.namespace, one.name), body)
            case rollout.DeleteReplicaSet(one):
                await api.delete(sets.at(self.pool.namespace, one.name), one.uid)
            case rollout.DeletePod(pod):
                await self._delete_pod(pod)
            case rollout.MarkPodForDeletion(pod, workers):
                for worker in workers:
                    await self._deps.store.drain(worker.worker)
                await self._set_deletion_cost(pod, str(rollout.MARKED_DELETION_COST))
            case rollout.UnmarkPod(pod):
                await self._set_deletion_cost(pod, None)

    async def _create(self, body: Mapping[str, Any]) -> None:
        namespace, name = self.pool.namespace, body["metadata"]["name"]
        path = resources.REPLICA_SETS.at(namespace, name)
        try:
            await self._deps.api.create(resources.REPLICA_SETS.at(namespace), body)
        except api_errors.ConflictError:
            owners = (await self._deps.api.get(path))["metadata"].get("ownerReferences") or ()
            if not any(one["kind"] == "WorkerPool" for one in owners):
                raise api_errors.ForeignObjectError(
                    f"the ReplicaSet {name} in namespace {namespace} belongs to no WorkerPool;"
                    f" delete it: `kubectl delete rs/{name} --namespace {namespace}`"
                ) from None
            # Another leader was faster, or it belongs to a deleted pool and is about to go.
            raise

    async def _delete_pod(self, pod: ObservedPod) -> None:
        with contextlib.suppress(api_errors.ObjectNotFoundError):
            await self._deps.api.delete(resources.PODS.at(self.pool.namespace, pod.name), pod.uid)

    async def _set_deletion_cost(self, pod: ObservedPod, cost: str | None) -> None:
        body = {"metadata": {"uid": pod.uid, "annotations": {observed.DELETION_COST: cost}}}
        with contextlib.suppress(api_errors.ObjectNotFoundError):
            await self._deps.api.patch(resources.PODS.at(self.pool.namespace, pod.name), body)


def _log_fields(step: RolloutStep) -> Mapping[str, object]:
    return {"step": type(step).__name__} | {
        name: getattr(value, "name", value)
        for name in ("replica_set", "pod", "replicas")
        if (value := getattr(step, name, None)) is not None
    }
