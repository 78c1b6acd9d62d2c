"""Which ReplicaSet is made, grown or shrunk next, and which of its workers goes. Pure.

To scale in and to bring a new revision are one thing: workers are told to end, and end when they
have finished what they run, or their grace is over. Which set has how many is all there is to
remember, and the cluster remembers it: whoever leads next goes on from there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from workron.store.types import WorkerRow
    from workron_controller.workerpools.observed import (
        ObservedPod,
        ObservedPool,
        ObservedReplicaSet,
    )


DELETION_COST_CHOSEN: Final = -1000
"""A pod of this cost goes before all that are as ready as it is."""
_SURGE: Final = 4
"""A quarter as many again, while one revision takes the place of another."""


@dataclass(frozen=True, slots=True)
class CreateReplicaSet:
    """Make the set of the newest revision."""

    replicas: int


@dataclass(frozen=True, slots=True)
class ResizeReplicaSet:
    """Have a set bigger or smaller."""

    set: ObservedReplicaSet
    replicas: int


@dataclass(frozen=True, slots=True)
class ChoosePodToDelete:
    """Have a pod be the next to go, and its worker claim nothing more."""

    pod: ObservedPod
    workers: Sequence[WorkerRow]


@dataclass(frozen=True, slots=True)
class SparePod:
    """Have a pod that was chosen once be like any other."""

    pod: ObservedPod


@dataclass(frozen=True, slots=True)
class ReplacePod:
    """Have another pod come for one whose worker claims nothing more."""

    pod: ObservedPod


@dataclass(frozen=True, slots=True)
class RemoveReplicaSet:
    """Remove a set that is empty and of no use."""

    set: ObservedReplicaSet


RolloutStep = (
    CreateReplicaSet
    | ResizeReplicaSet
    | ChoosePodToDelete
    | SparePod
    | ReplacePod
    | RemoveReplicaSet
)


@dataclass(frozen=True, slots=True)
class RolloutTarget:
    """What there should be."""

    revision: str
    replicas: int
    room: float
    """No more workers than these at any time, those that are about to end among them."""


def plan_rollout(
    sight: ObservedPool, staff: Iterable[WorkerRow], aim: RolloutTarget
) -> list[RolloutStep]:
    """Say what to do now, in order; what is to follow is seen the next time."""
    by_pod: dict[str, list[WorkerRow]] = {}
    for worker in staff:
        by_pod.setdefault(worker.name, []).append(worker)
    return list(_Plan(sight, by_pod, aim).steps())


def remaining_after(sight: ObservedPool, steps: Iterable[RolloutStep]) -> int:
    """Count the workers that there are or will be when these steps are taken."""
    more = 0
    for step in steps:
        if isinstance(step, CreateReplicaSet):
            more += step.replicas
        elif isinstance(step, ResizeReplicaSet):
            more += max(0, step.replicas - step.set.replicas)
    return sight.present + more


@dataclass(frozen=True, slots=True)
class _Plan:
    sight: ObservedPool
    staff: Mapping[str, Sequence[WorkerRow]]
    aim: RolloutTarget

    def steps(self) -> Iterator[RolloutStep]:
        newest = next((one for one in self.sight.sets if one.revision == self.aim.revision), None)
        older = [one for one in self.sight.sets if one is not newest]
        kept = self._kept(newest, older)
        yield from self._retire(older, kept)
        wanted = self._wanted(kept)
        if newest is None:
            if wanted:
                yield CreateReplicaSet(self._fitting(0, wanted))
        elif wanted < newest.replicas:
            yield from self._shrink(newest, wanted)
        else:
            yield from self._replace(newest)
            if (fitting := self._fitting(newest.replicas, wanted)) > newest.replicas:
                yield ResizeReplicaSet(newest, fitting)

    def _kept(self, newest: ObservedReplicaSet | None, older: Iterable[ObservedReplicaSet]) -> int:
        """Say how many older workers are needed yet: as many as newer ones are not ready."""
        ready = sum(pod.is_ready and pod.is_live for pod in self.sight.of(newest)) if newest else 0
        still = sum(min(one.replicas, self._working(one)) for one in older)
        missing = max(0, self.aim.replicas - ready)
        # Where there is no room for both, an older one goes first: one for each that gets ready.
        beside = max(0, self.aim.room - min(ready + 1, self.aim.replicas))
        return int(min(still, missing, beside))

    def _wanted(self, kept: int) -> int:
        """Say how many newer ones there are to be while older ones are kept."""
        if not kept:
            return self.aim.replicas
        surge = max(1, self.aim.replicas // _SURGE)
        return min(self.aim.replicas, self.aim.replicas - kept + surge)

    def _retire(self, older: Sequence[ObservedReplicaSet], kept: int) -> Iterator[RolloutStep]:
        """Shrink older sets to those that work, and the oldest further, until so many are left."""
        working = [min(one.replicas, self._working(one)) for one in older]
        excess = sum(working) - kept
        for one, still in zip(older, working, strict=True):
            fewer = min(still, excess)
            excess -= fewer
            if still - fewer < one.replicas:
                yield from self._shrink(one, still - fewer)
            elif not one.replicas and all(pod.is_over for pod in self.sight.of(one)):
                yield RemoveReplicaSet(one)

    def _replace(self, one: ObservedReplicaSet) -> Iterator[RolloutStep]:
        """End those that were told to claim nothing, and whose set was not shrunk then after all.

        They would be counted and do nothing, for as long as what they run takes.
        """
        live = [pod for pod in self.sight.of(one) if pod.is_live]
        if len(live) > one.replicas:
            return
        for pod in live:
            if self.staff.get(pod.uid) and not self._takes(pod):
                yield ReplacePod(pod)

    def _shrink(self, one: ObservedReplicaSet, replicas: int) -> Iterator[RolloutStep]:
        live = [pod for pod in self.sight.of(one) if pod.is_live]
        youngest_first = sorted(live, key=lambda pod: pod.born, reverse=True)
        pods = sorted(youngest_first, key=self._rank)
        leaving = max(0, len(pods) - replicas)
        for pod in pods[:leaving]:
            yield ChoosePodToDelete(pod, self.staff.get(pod.uid, ()))
        for pod in pods[leaving:]:
            if pod.cost:
                # It was chosen, and another went in its place.
                yield SparePod(pod)
        yield ResizeReplicaSet(one, replicas)

    def _rank(self, pod: ObservedPod) -> tuple[bool, bool, bool, int]:
        """Order them as their set does, and then by what it costs to end them."""
        workers = self.staff.get(pod.uid, ())
        held = sum(worker.claims for worker in workers)
        return pod.node is not None, pod.is_ready, self._takes(pod), held

    def _fitting(self, replicas: int, wanted: int) -> int:
        """Grow no further than there is room for, and shrink nothing for want of it."""
        return int(min(wanted, replicas + max(0, self.aim.room - self.sight.present)))

    def _working(self, one: ObservedReplicaSet) -> int:
        """Count those that take jobs; one that is slow to answer probes may do so all the same."""
        pods = (pod for pod in self.sight.of(one) if pod.is_live)
        return sum(pod.is_ready or self._takes(pod) for pod in pods)

    def _takes(self, pod: ObservedPod) -> bool:
        return any(not worker.is_draining for worker in self.staff.get(pod.uid, ()))


_OUT_OF_SERVICE: Final = "node.kubernetes.io/out-of-service"
"""Set by a person who knows that the machine is off; Kubernetes itself relies on it."""


def proven_by_kubelet(pod: ObservedPod) -> str | None:
    """Say that the pod's own node has seen the end of all that was in it."""
    if pod.is_over and pod.containers and all(one.has_ended for one in pod.containers):
        return f"the kubelet reported that all containers of pod {pod.name} have ended"
    return None


def proven_by_node(name: str, node: Mapping[str, Any] | None) -> str | None:
    """Say that a node is no more, or off for certain; None stands for one that does not exist."""
    if node is None:
        return f"node {name} does not exist any more"
    taints = (node.get("spec") or {}).get("taints") or ()
    if any(taint.get("key") == _OUT_OF_SERVICE for taint in taints):
        return f"node {name} is out of service"
    return None
