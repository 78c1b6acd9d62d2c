"""Decides which ReplicaSets and pods to change next. Pure.

Scaling down and rolling out a new revision work alike. A pod is *marked*: its worker drains, and a
low deletion cost makes its ReplicaSet delete it first. Then the ReplicaSet is scaled down by one.
The pod terminates once its jobs have ended or `drainTimeout` is over.

For a new revision:

1. The new ReplicaSet gets `replicas - kept` workers and a quarter more, at least one.
2. `kept` is the number of older workers that still replace new ones that are not ready. Each new
   worker that becomes ready lowers it, and the oldest ReplicaSet is scaled down.
3. An older ReplicaSet without pods is deleted.

The replicas of the sets are the only state, and the API server stores it: a new leader continues
where the last one stopped. At no time are there more workers than `max_workers`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from workron.store.types import WorkerRow
    from workron_controller.workerpools.observed import (
        ObservedPod,
        ObservedPool,
        ObservedReplicaSet,
    )


MARKED_DELETION_COST: Final = -1000
"""A ReplicaSet deletes pods with a lower cost first, among those that are equally ready."""
_SURGE_DIVISOR: Final = 4


@dataclass(frozen=True, slots=True)
class CreateReplicaSet:
    """Create the ReplicaSet of the newest revision."""

    replicas: int


@dataclass(frozen=True, slots=True)
class ScaleReplicaSet:
    """Scale a ReplicaSet."""

    replica_set: ObservedReplicaSet
    replicas: int


@dataclass(frozen=True, slots=True)
class DeleteReplicaSet:
    """Delete a ReplicaSet that is empty and outdated."""

    replica_set: ObservedReplicaSet


@dataclass(frozen=True, slots=True)
class MarkPodForDeletion:
    """Drain the workers of a pod, and have its ReplicaSet delete it first."""

    pod: ObservedPod
    workers: Sequence[WorkerRow]


@dataclass(frozen=True, slots=True)
class UnmarkPod:
    """Remove the mark of a pod that was not deleted."""

    pod: ObservedPod


@dataclass(frozen=True, slots=True)
class DeletePod:
    """Delete a pod whose worker drains, so that its ReplicaSet creates another one."""

    pod: ObservedPod


RolloutStep = (
    CreateReplicaSet
    | ScaleReplicaSet
    | DeleteReplicaSet
    | MarkPodForDeletion
    | UnmarkPod
    | DeletePod
)


def worker_count_after(observed: ObservedPool, steps: Iterable[RolloutStep]) -> int:
    """Return the number of workers that are there or come when these steps are taken."""
    added = 0
    for step in steps:
        if isinstance(step, CreateReplicaSet):
            added += step.replicas
        elif isinstance(step, ScaleReplicaSet):
            added += max(0, step.replicas - step.replica_set.replicas)
    return observed.worker_count + added


@dataclass(frozen=True, slots=True)
class RolloutPlan:
    """The steps from the observed to the desired state of a pool."""

    observed: ObservedPool
    workers: Mapping[str, Sequence[WorkerRow]]
    """By the uid of their pod."""
    revision: str
    """The desired revision."""
    replicas: int
    max_workers: float
    """The bound on workers at any time, terminating ones included."""

    def steps(self) -> Iterator[RolloutStep]:
        """Yield the steps to take now, in order; the next reconciliation plans what follows."""
        sets = self.observed.replica_sets
        newest = next((one for one in sets if one.revision == self.revision), None)
        older = [one for one in sets if one is not newest]
        kept = self._kept(newest, older)
        yield from self._scale_down_older(older, kept)
        wanted = self._wanted(kept)
        if newest is None:
            if wanted:
                yield CreateReplicaSet(self._within_limit(0, wanted))
        elif wanted < newest.replicas:
            yield from self._scale_down(newest, wanted)
        else:
            yield from self._replace_draining(newest)
            replicas = self._within_limit(newest.replicas, wanted)
            if replicas > newest.replicas:
                yield ScaleReplicaSet(newest, replicas)

    def _kept(self, newest: ObservedReplicaSet | None, older: Iterable[ObservedReplicaSet]) -> int:
        """Return how many older workers are still needed while new ones are not ready."""
        new_pods = self.observed.live_pods(newest) if newest else []
        ready = sum(pod.is_ready for pod in new_pods)
        working = sum(self._working(one) for one in older)
        missing = max(0, self.replicas - ready)
        # Without room for both, an older worker goes for the next new one that gets ready.
        beside_new = max(0, self.max_workers - min(ready + 1, self.replicas))
        return int(min(working, missing, beside_new))

    def _wanted(self, kept: int) -> int:
        """Return how many new workers there should be while older ones are kept."""
        if not kept:
            return self.replicas
        surge = max(1, self.replicas // _SURGE_DIVISOR)
        return min(self.replicas, self.replicas - kept + surge)

    def _scale_down_older(
        self, older: Sequence[ObservedReplicaSet], kept: int
    ) -> Iterator[RolloutStep]:
        """Scale older sets down to `kept` working pods together, the oldest set first."""
        excess = sum(self._working(one) for one in older) - kept
        for one in older:
            working = self._working(one)
            replicas = working - min(working, excess)
            excess -= working - replicas
            if replicas < one.replicas:
                yield from self._scale_down(one, replicas)
            elif not one.replicas and all(pod.is_finished for pod in self.observed.pods_of(one)):
                yield DeleteReplicaSet(one)

    def _replace_draining(self, one: ObservedReplicaSet) -> Iterator[RolloutStep]:
        """Delete pods that drain although their set was not scaled down in the end.

        They would count as workers and claim nothing.
        """
        live = self.observed.live_pods(one)
        if len(live) > one.replicas:
            return
        for pod in live:
            if self.workers.get(pod.uid) and not self._claims(pod):
                yield DeletePod(pod)

    def _scale_down(self, one: ObservedReplicaSet, replicas: int) -> Iterator[RolloutStep]:
        live = self.observed.live_pods(one)
        youngest_first = sorted(live, key=lambda pod: pod.created_at, reverse=True)
        pods = sorted(youngest_first, key=self._deletion_rank)
        excess = max(0, len(pods) - replicas)
        for pod in pods[:excess]:
            yield MarkPodForDeletion(pod, self.workers.get(pod.uid, ()))
        for pod in pods[excess:]:
            if pod.deletion_cost:
                yield UnmarkPod(pod)
        yield ScaleReplicaSet(one, replicas)

    def _deletion_rank(self, pod: ObservedPod) -> tuple[bool, bool, bool, int]:
        """Rank pods as their ReplicaSet does, and then by how many jobs they run."""
        claims = sum(worker.claims for worker in self.workers.get(pod.uid, ()))
        return pod.node is not None, pod.is_ready, self._claims(pod), claims

    def _within_limit(self, replicas: int, wanted: int) -> int:
        """Return the replicas to scale up to; the limit never scales down."""
        room = max(0, self.max_workers - self.observed.worker_count)
        return int(min(wanted, replicas + room))

    def _working(self, one: ObservedReplicaSet) -> int:
        """Count the pods that run jobs; one with a slow probe may run them all the same."""
        pods = self.observed.live_pods(one)
        return min(one.replicas, sum(pod.is_ready or self._claims(pod) for pod in pods))

    def _claims(self, pod: ObservedPod) -> bool:
        return any(not worker.is_draining for worker in self.workers.get(pod.uid, ()))
