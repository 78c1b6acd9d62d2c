"""The state of the model: a snapshot of store, workers, network and maintainer.

All values are immutable tuples, so that equivalent snapshots are equal. `Worker` has all that
belongs to one worker: its process, its row in the store, and what the maintainer observed. So the
explorer can treat snapshots that differ only in the workers' names as one. The rest is `Shared`.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from tests.protocol.rules import Fault


class Place(StrEnum):
    """The table of the store that a job is in."""

    READY = "ready"
    RUNNING = "running"
    AWAITING = "awaiting proof of death"
    DONE = "done"


class End(StrEnum):
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    CANCELLED = "Cancelled"


class Claim(NamedTuple):
    """The right to run one attempt: `id` identifies it, `fence` orders it."""

    job: int
    id: int
    fence: int


class Job(NamedTuple):
    """A job in the store. `is_cancelled` is the cancel signal."""

    place: Place = Place.READY
    attempts: int = 0
    fence: int = 0
    failures: int = 0
    losses: int = 0
    is_cancelled: bool = False
    end: End | None = None


class Row(NamedTuple):
    """A worker's row in the store, with its claims.

    `has_risen`: its counter is not the one that the maintainer observed last. `awaiting`: jobs that
    wait for proof of this worker's death.
    """

    session: int
    is_live: bool
    has_risen: bool = True
    claims: tuple[Claim, ...] = ()
    awaiting: tuple[int, ...] = ()


class Verb(StrEnum):
    HEARTBEAT = "heartbeat"
    CLAIM = "claim"
    COMPLETE = "complete"
    RELEASE = "release"
    REGISTER = "register"


class Call(NamedTuple):
    """A request to the store, in transit; the agent makes the `id` of a claim."""

    verb: Verb
    session: int
    id: int = 0
    claim: Claim | None = None
    is_success: bool = False
    is_of_older_boot: bool = False


class Answer(NamedTuple):
    """The answer to a heartbeat, in transit: the worker's claims, each with its cancel signal.

    `age` is the time since the heartbeat was sent.
    """

    age: int
    is_known: bool
    held: tuple[tuple[Claim, bool], ...]


class HeartbeatStatus(StrEnum):
    """Whether the heartbeat of this tick was sent, if no answer is in transit."""

    DUE = "due"
    DONE = "done"


class Agent(StrEnum):
    UP = "up"
    FROZEN = "frozen"
    """The whole worker is frozen, with its command; its clocks continue."""
    STUCK = "stuck"
    """Only the agent is frozen; runner and command continue."""
    RESUMED = "resumed"
    """Running again, before the check of its deadline."""
    DEAD = "dead"


class Stage(StrEnum):
    IDLE = "idle"
    ASKING = "asking for a claim"
    RUNNING = "running"
    STOPPING = "stopping"
    """The command got a SIGTERM and is not dead yet."""
    SUCCEEDED = "reporting success"
    FAILED = "reporting failure"
    RELEASING = "releasing"


class Slot(NamedTuple):
    """The one slot of a worker.

    `id` is that of the claim call; `claim` is what was granted, in transit while the agent is still
    asking. The agent does not know the last three: `is_read` exists only if a missing lock divides
    a claim in two steps, `is_reported` says that the store accepted an end, `is_orphaned` that a
    failover lost this claim.
    """

    stage: Stage = Stage.IDLE
    id: int = 0
    claim: Claim | None = None
    is_fresh: bool = False
    """Started after the heartbeat was sent whose answer is in transit."""
    is_read: bool = False
    is_reported: bool = False
    is_orphaned: bool = False


class Worker(NamedTuple):
    """One worker: process, row and observation.

    `session` 0: it has to register. `age`: ticks since its last acknowledged heartbeat was sent.
    `unchanged`: ticks for which the maintainer saw its counter unchanged. `is_reachable`: since its
    last acknowledged heartbeat, only the database can have kept it from sending another.
    """

    agent: Agent
    is_cut: bool
    session: int
    age: int
    heartbeat: HeartbeatStatus | Answer
    slot: Slot
    row: Row
    standby: Row | None
    late: tuple[Call, ...]
    """Copies of its requests that are still in the network."""
    unchanged: int
    is_expired: bool
    """Its counter was observed unchanged for a whole lease."""
    is_reachable: bool


class Shared(NamedTuple):
    """All that does not belong to a worker.

    `highest`: the highest fence issued for each job, unaffected by failovers. `used`: the faults
    so far.
    """

    is_up: bool
    jobs: tuple[Job, ...]
    standby: tuple[Job, ...] | None
    """The jobs of a lagging standby; None: it is up to date."""
    is_clock_behind: bool
    """The database's clock is before every fence that it has issued."""
    highest: tuple[int, ...]
    used: tuple[Fault, ...] = ()


class State(NamedTuple):
    """A snapshot. `gap`: ticks since the maintainer's last successful observation."""

    shared: Shared
    gap: int
    workers: tuple[Worker, ...]


NO_ROW = Row(session=0, is_live=False)


def initial(workers: int, jobs: int) -> State:
    """Every worker has sent its first heartbeat, every job is ready, nothing was observed."""
    worker = Worker(
        agent=Agent.UP,
        is_cut=False,
        session=1,
        age=0,
        heartbeat=HeartbeatStatus.DONE,
        slot=Slot(),
        row=Row(session=1, is_live=True),
        standby=None,
        late=(),
        unchanged=0,
        is_expired=False,
        is_reachable=True,
    )
    shared = Shared(
        is_up=True,
        jobs=(Job(),) * jobs,
        standby=None,
        is_clock_behind=False,
        highest=(0,) * jobs,
    )
    return State(shared, 0, (worker,) * workers)


def with_late(worker: Worker, call: Call) -> Worker:
    """The worker with one more copy of its request in the network."""
    return worker._replace(late=tuple(sorted((*worker.late, call), key=repr)))


def with_job(shared: Shared, index: int, job: Job) -> Shared:
    return shared._replace(jobs=(*shared.jobs[:index], job, *shared.jobs[index + 1 :]))
