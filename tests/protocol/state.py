"""What the model remembers: one snapshot of the store, the workers, the network and the maintainer.

Everything is an immutable tuple, so that two snapshots that mean the same are equal. All that
belongs to one worker stands together in `Worker`: its process, its row in the store, and what the
maintainer saw of it. So two workers are swapped by swapping two tuples, and the explorer can
treat snapshots that differ only in the workers' names as one. The rest is `Shared`.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from tests.protocol.rules import Fault


class Place(StrEnum):
    """Which table of the store a job is in."""

    READY = "ready"
    RUNNING = "running"
    AWAITING = "awaiting proof of death"
    DONE = "done"


class End(StrEnum):
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    CANCELLED = "Cancelled"


class Claim(NamedTuple):
    """The right to run one attempt: `id` says *this one*, `fence` says *newer*."""

    job: int
    id: int
    fence: int


class Job(NamedTuple):
    """A job as the store has it. `is_cancelled` is the mark that somebody asked for its end."""

    place: Place = Place.READY
    attempts: int = 0
    fence: int = 0
    failures: int = 0
    losses: int = 0
    is_cancelled: bool = False
    end: End | None = None


class Row(NamedTuple):
    """A worker as the store has it, with its claims.

    `has_risen` says that its counter is not the one that the maintainer saw last. `awaiting` are
    jobs that wait for proof that this worker died.
    """

    session: int
    is_live: bool
    has_risen: bool = True
    claims: tuple[Claim, ...] = ()
    awaiting: tuple[int, ...] = ()


class Verb(StrEnum):
    BEAT = "beat"
    CLAIM = "claim"
    COMPLETE = "complete"
    RELEASE = "release"
    REGISTER = "register"


class Call(NamedTuple):
    """A request to the store, as it travels; `id` is the agent's own name for a claim."""

    verb: Verb
    session: int
    id: int = 0
    claim: Claim | None = None
    is_success: bool = False
    is_of_older_boot: bool = False


class Answer(NamedTuple):
    """The answer to a beat, on its way: the worker's claims, each with its cancel mark.

    `age` is how long ago the beat was sent.
    """

    age: int
    is_known: bool
    held: tuple[tuple[Claim, bool], ...]


class Pulse(StrEnum):
    """Where the beat of this tick stands, when no answer is on its way."""

    DUE = "due"
    DONE = "done"


class Agent(StrEnum):
    UP = "up"
    FROZEN = "frozen"
    """The whole worker stands still, its command too; its clocks go on."""
    STUCK = "stuck"
    """The agent alone stands still; runner and command go on."""
    THAWED = "thawed"
    """Awake again, and has not looked at its deadline yet."""
    DEAD = "dead"


class Stage(StrEnum):
    IDLE = "idle"
    ASKING = "asking for a claim"
    RUNNING = "running"
    STOPPING = "stopping"
    """The command got its TERM and is not dead yet."""
    SUCCEEDED = "reporting success"
    FAILED = "reporting failure"
    RELEASING = "releasing"


class Hand(NamedTuple):
    """What a worker's one slot holds.

    `id` names the claim it asks for; `claim` is what it was granted, and while it is still asking,
    the grant is an answer on its way. The last three are no knowledge of the agent: `is_read`
    exists only where a claim is torn in two by a missing lock, `is_reported` is the store's
    attempt row that says an end was accepted, `is_orphaned` that a failover lost this claim.
    """

    stage: Stage = Stage.IDLE
    id: int = 0
    claim: Claim | None = None
    is_fresh: bool = False
    """Started after the beat was sent whose answer is awaited."""
    is_read: bool = False
    is_reported: bool = False
    is_orphaned: bool = False


class Worker(NamedTuple):
    """One worker, from all sides.

    `session` 0 means that it has to register. `age` counts ticks since its last acknowledged beat
    was sent, `still` how long the maintainer has seen its counter stand still. `is_blameless`
    while nothing but the database kept it from beating since its last acknowledged beat.
    """

    agent: Agent
    is_cut: bool
    session: int
    age: int
    beat: Pulse | Answer
    hand: Hand
    row: Row
    standby: Row | None
    late: tuple[Call, ...]
    """Copies of its requests that are still in the network."""
    still: int
    is_ripe: bool
    """A look has shown its counter to stand still for a whole lease."""
    is_blameless: bool


class Shared(NamedTuple):
    """All that belongs to no worker.

    `highest` is the highest fence ever issued for each job, which no failover makes forget. `used`
    are the faults so far.
    """

    is_up: bool
    jobs: tuple[Job, ...]
    standby: tuple[Job, ...] | None
    """The jobs as a standby has them that fell behind; None: it keeps up."""
    is_clock_behind: bool
    """The database's clock went back, before every fence it has issued."""
    highest: tuple[int, ...]
    used: tuple[Fault, ...] = ()


class State(NamedTuple):
    """A snapshot. `gap` counts ticks since the maintainer's last successful look."""

    shared: Shared
    gap: int
    workers: tuple[Worker, ...]


GONE = Row(session=0, is_live=False)


def initial(workers: int, jobs: int) -> State:
    """Every worker has registered and beaten; every job is ready; the maintainer saw nothing."""
    worker = Worker(
        agent=Agent.UP,
        is_cut=False,
        session=1,
        age=0,
        beat=Pulse.DONE,
        hand=Hand(),
        row=Row(session=1, is_live=True),
        standby=None,
        late=(),
        still=0,
        is_ripe=False,
        is_blameless=True,
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
    """The worker with one more copy of a request of its in the network."""
    return worker._replace(late=tuple(sorted((*worker.late, call), key=repr)))


def with_job(shared: Shared, index: int, job: Job) -> Shared:
    return shared._replace(jobs=(*shared.jobs[:index], job, *shared.jobs[index + 1 :]))
