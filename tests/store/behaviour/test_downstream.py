"""The effect of an end on downstreams: the table of `when`, in any order."""

import itertools

import pytest

from tests.store.behaviour import plans
from tests.store.behaviour.harness import Harness
from tests.store.behaviour.plans import task
from tests.store.behaviour.worker import Worker
from workron.core.ids import JobId
from workron.core.plan import Plan
from workron.core.verdict import Condition
from workron.store.types import Outcome

SUCCEEDED, FAILED, FINISHED = Condition.SUCCEEDED, Condition.FAILED, Condition.FINISHED

GO = "Queued"
FATES = {
    "Succeeded": {SUCCEEDED: GO, FAILED: "Skipped/NotNeeded", FINISHED: GO},
    "Failed/ExitCode": {SUCCEEDED: "Skipped/UpstreamFailed", FAILED: GO, FINISHED: GO},
    "Cancelled": {
        SUCCEEDED: "Skipped/UpstreamCancelled",
        FAILED: "Skipped/NotNeeded",
        FINISHED: GO,
    },
    "Skipped/UpstreamFailed": {
        SUCCEEDED: "Skipped/UpstreamFailed",
        FAILED: "Skipped/UpstreamFailed",
        FINISHED: GO,
    },
    "Skipped/UpstreamCancelled": {
        SUCCEEDED: "Skipped/UpstreamCancelled",
        FAILED: "Skipped/UpstreamCancelled",
        FINISHED: GO,
    },
    "Skipped/NotNeeded": {
        SUCCEEDED: "Skipped/NotNeeded",
        FAILED: "Skipped/NotNeeded",
        FINISHED: GO,
    },
}
CELLS = [(end, when, fate) for end, row in FATES.items() for when, fate in row.items()]
HAPPENED = {
    end: plans.outside(source, when)
    for end, source, when in [
        ("Skipped/UpstreamFailed", "bad", SUCCEEDED),
        ("Skipped/UpstreamCancelled", "cancelled", SUCCEEDED),
        ("Skipped/NotNeeded", "good", FAILED),
    ]
}
"""Dependencies that skip a job, on runs that ended in each state."""


async def _make_roots(
    harness: Harness, worker: Worker, fate_of_others: Outcome = Outcome.SUCCEEDED
) -> dict[str, str]:
    """End one run in each state; return their names."""
    await harness.submit(plans.job("good"))
    await harness.submit(plans.job("bad"))
    await worker.run_all({"bad": Outcome.FAILED, "up": fate_of_others})
    await harness.store.cancel(await harness.submit(plans.job("cancelled")))
    for end, cause in HAPPENED.items():
        await harness.submit(plans.job(end.replace("/", "-").lower(), outside=[cause]))
    await harness.propagate_all()
    names = {end: end.replace("/", "-").lower() for end in HAPPENED}
    return names | {"Succeeded": "good", "Failed/ExitCode": "bad", "Cancelled": "cancelled"}


@pytest.mark.parametrize(("end", "when", "fate"), CELLS)
async def test_job_is_resolved_by_an_ended_run(
    harness: Harness, worker: Worker, end: str, when: Condition, fate: str
) -> None:
    names = await _make_roots(harness, worker)
    run = await harness.submit(plans.job("down", outside=[plans.outside(names[end], when)]))
    await harness.propagate_all()
    assert await harness.state(run) == fate


@pytest.mark.parametrize(("end", "when", "fate"), CELLS)
async def test_job_is_resolved_by_a_run_that_ends_later(
    harness: Harness, worker: Worker, end: str, when: Condition, fate: str
) -> None:
    run = await harness.submit(plans.job("down", outside=[plans.outside("up", when)]))
    cause = [HAPPENED[end]] if end in HAPPENED else []
    up = await harness.submit(plans.job("up", outside=cause))
    assert await harness.state(run) == "Waiting/Upstream"
    if end == "Cancelled":
        await harness.store.cancel(up)
    failed = end.startswith("Failed")
    await _make_roots(harness, worker, Outcome.FAILED if failed else Outcome.SUCCEEDED)
    await worker.run_all()
    assert await harness.state(up) == end
    assert await harness.state(run) == ("Succeeded" if fate == GO else fate)


def _ending(end: str, when: Condition) -> Plan:
    """Plan `first -> up -> down`, in which `up` ends in this state when `first` succeeds."""
    cause = {"Skipped/NotNeeded": FAILED}.get(end, SUCCEEDED)
    return plans.dag(first=task(), up=task(when={"first": cause}), down=task(when={"up": when}))


@pytest.mark.parametrize("when", [SUCCEEDED, FAILED, FINISHED])
@pytest.mark.parametrize(
    ("end", "outcomes"),
    [
        ("Succeeded", {}),
        ("Failed/ExitCode", {"up": Outcome.FAILED}),
        ("Skipped/UpstreamFailed", {"first": Outcome.FAILED}),
        ("Skipped/NotNeeded", {}),
    ],
)
async def test_task_is_resolved_by_another_task_of_its_workflow(
    harness: Harness, worker: Worker, end: str, outcomes: dict[str, Outcome], when: Condition
) -> None:
    run = await harness.submit(_ending(end, when))
    await worker.run_all(outcomes)
    fate = FATES[end][when]
    stands = await harness.states(run)
    assert (stands["up"], stands["down"]) == (end, "Succeeded" if fate == GO else fate)


async def test_direct_downstreams_are_resolved_with_the_end(
    harness: Harness, worker: Worker
) -> None:
    plan = plans.dag(
        a=task(), go=task("a"), no=task(when={"a": FAILED}), any=task(when={"a": FINISHED})
    )
    run = await harness.submit(plan)
    await worker.end(await worker.claim_one())
    stands = await harness.states(run)
    assert (stands["go"], stands["no"], stands["any"]) == (GO, "Skipped/NotNeeded", GO)


async def test_job_waits_while_one_upstream_has_not_ended(harness: Harness, worker: Worker) -> None:
    run = await harness.submit(plans.dag(a=task(), b=task(), c=task("a", "b")))
    claimed = await worker.claim_by_name()
    await worker.fail(claimed["a"])
    await harness.propagate_all()
    assert await harness.state(run, "c") == "Waiting/Upstream"
    await worker.end(claimed["b"])
    assert await harness.state(run, "c") == "Skipped/UpstreamFailed"


WHENS = list(itertools.product([SUCCEEDED, FAILED, FINISHED], repeat=2))
OUTCOMES = list(itertools.product([Outcome.SUCCEEDED, Outcome.FAILED], repeat=2))


@pytest.mark.parametrize("whens", WHENS, ids="-".join)
async def test_order_of_the_ends_does_not_matter(
    harness: Harness, worker: Worker, whens: tuple[Condition, Condition]
) -> None:
    needs = dict(zip("ab", whens, strict=True))
    for number, outcomes in enumerate(OUTCOMES):
        seen = set()
        for order in ("ab", "ba"):
            plan = plans.dag(f"flow{number}{order}", a=task(), b=task(), c=task(when=needs))
            run = await harness.submit(plan)
            claimed = await worker.claim_by_name()
            for name in order:
                await worker.end(claimed[name], outcomes["ab".index(name)])
            seen.add(await harness.state(run, "c"))
            await worker.run_all()
        assert len(seen) == 1


@pytest.mark.parametrize(
    ("needs", "fate"),
    [
        (["Skipped/NotNeeded", "Skipped/UpstreamFailed"], "Skipped/UpstreamFailed"),
        (["Skipped/NotNeeded", "Cancelled"], "Skipped/UpstreamCancelled"),
        (["Cancelled", "Failed/ExitCode"], "Skipped/UpstreamFailed"),
        (["Succeeded", "Skipped/NotNeeded"], "Skipped/NotNeeded"),
        (["Succeeded", "Succeeded"], GO),
    ],
)
async def test_highest_verdict_wins(
    harness: Harness, worker: Worker, needs: list[str], fate: str
) -> None:
    names = await _make_roots(harness, worker)
    wanted = sorted({names[end] for end in needs})
    for number, order in enumerate(itertools.permutations(wanted)):
        outside = [plans.outside(name) for name in order]
        run = await harness.submit(plans.job(f"down{number}", outside=outside))
        assert await harness.state(run) == fate


async def test_failed_branch_is_skipped_to_its_end(harness: Harness, worker: Worker) -> None:
    chain = {f"t{i}": task(f"t{i - 1}") for i in range(1, 20)}
    run = await harness.submit(plans.dag(t0=task(), **chain))
    await worker.fail(await worker.claim_one())
    await harness.propagate_all()
    stands = await harness.states(run)
    assert {stands[name] for name in chain} == {"Skipped/UpstreamFailed"}
    assert stands["flow"] == "Failed/MemberFailed"


async def test_failed_branch_is_not_claimed_before_ends_are_propagated(
    harness: Harness, worker: Worker
) -> None:
    plan = plans.dag(a=task(), b=task("a"), c=task("b"), d=task(when={"c": FINISHED}))
    run = await harness.submit(plan)
    await worker.fail(await worker.claim_one())
    assert not await worker.claim()
    assert await _steps(harness) >= 2
    assert await harness.state(run, "d") == GO


async def _steps(harness: Harness) -> int:
    """Propagate in the smallest steps; return how many moved something."""
    steps = 0
    while await harness.store.propagate(1):
        steps += 1
    return steps


async def test_diamond_waits_for_both_branches(harness: Harness, worker: Worker) -> None:
    plan = plans.dag(top=task(), left=task("top"), right=task("top"), end=task("left", "right"))
    run = await harness.submit(plan)
    await worker.end(await worker.claim_one())
    arms = await worker.claim_by_name()
    await worker.end(arms["right"])
    assert not await worker.claim()
    await worker.end(arms["left"])
    assert (await worker.claim_one()).name == "end"
    assert await _ended(harness, run) == {"top", "left", "right"}


async def _ended(harness: Harness, run: JobId) -> set[str]:
    rows = await harness.rows(run)
    return {name for name, row in rows.items() if row.finished_at is not None}
