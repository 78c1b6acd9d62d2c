"""At most one candidate leads, and another one leads soon when it stops."""

import asyncio
import random
from collections.abc import AsyncIterator

import pytest
import structlog

from tests.controller.fake_api.fake import FakeApi
from tests.controller.fake_api.kinds import LEASE
from tests.controller.manual_clock import ManualClock
from workron_controller.kube.auth import ApiAccess
from workron_controller.kube.client import ApiClient
from workron_controller.kube.leader_election import LeaderElection, LeaseLock


class _Candidate:
    """A replica that takes part in the election."""

    def __init__(self, access: ApiAccess, time: ManualClock, name: str) -> None:
        self.server = ApiClient(access, in_flight=1)
        self.time = time
        lock = LeaseLock(self.server, "workron", "controller", name)
        self.election = LeaderElection(lock, time, random.Random(name), sleep=time.sleep)
        self.task = asyncio.create_task(self.election.run())

    def is_leading(self) -> bool:
        return self.election.is_leading

    async def stop(self) -> None:
        """Stop it as SIGTERM does."""
        self.task.cancel()
        await asyncio.wait([self.task])


class _Candidates:
    """All candidates of a test; most share a clock."""

    def __init__(self, access: ApiAccess, time: ManualClock) -> None:
        self._access = access
        self._time = time
        self._all: list[_Candidate] = []

    async def start(self, name: str, time: ManualClock | None = None) -> _Candidate:
        """Start a candidate, and wait for its first read."""
        candidate = _Candidate(self._access, time or self._time, name)
        self._all.append(candidate)
        await self.wait_until_idle(candidate.time)
        return candidate

    async def wait_until_idle(self, time: ManualClock) -> None:
        here = [one for one in self._all if one.time is time and not one.task.done()]
        await time.wait_for_sleepers(len(here))

    async def close(self) -> None:
        for candidate in self._all:
            await candidate.stop()
            await candidate.server.__aexit__()


@pytest.fixture
async def candidates(access: ApiAccess, time: ManualClock) -> AsyncIterator[_Candidates]:
    candidates = _Candidates(access, time)
    yield candidates
    await candidates.close()


def _holder(api: FakeApi) -> str:
    found = api.find(LEASE, "controller", "workron")
    assert found is not None
    return str(found["spec"]["holderIdentity"])


async def test_first_candidate_leads(api: FakeApi, candidates: _Candidates) -> None:
    one = await candidates.start("one")
    two = await candidates.start("two")
    assert (one.is_leading(), two.is_leading()) == (True, False)
    assert _holder(api) == "one"


async def test_leader_leads_as_long_as_it_renews(
    candidates: _Candidates, time: ManualClock
) -> None:
    one = await candidates.start("one")
    two = await candidates.start("two")
    await time.run_for(600)
    assert (one.is_leading(), two.is_leading()) == (True, False)


async def test_renewal_is_one_request_every_two_seconds(
    api: FakeApi, candidates: _Candidates, time: ManualClock
) -> None:
    await candidates.start("one")
    before = len(api.requests.all)
    await time.run_for(60)
    assert len(api.requests.all) - before == 30
    assert {request.verb for request in api.requests.all[before:]} == {"patch"}


async def test_successor_leads_within_a_second_when_the_leader_steps_down(
    api: FakeApi, candidates: _Candidates, time: ManualClock
) -> None:
    one = await candidates.start("one")
    two = await candidates.start("two")
    await one.stop()
    assert (_holder(api), one.is_leading()) == ("", False)
    await time.run_for(1)
    assert two.is_leading()


async def test_successor_leads_within_15_seconds_when_the_leader_is_killed(
    api: FakeApi, candidates: _Candidates, time: ManualClock
) -> None:
    frozen = ManualClock()
    await candidates.start("one", frozen)
    two = await candidates.start("two")
    for _ in range(60):
        await frozen.run_for(0.5)
        await time.run_for(0.5)
    # Its clock does not advance any more, so it does nothing.
    killed_at = time.monotonic()
    while not two.is_leading():
        assert _holder(api) == "one"
        await time.run_for(0.25)
    assert 10 <= time.monotonic() - killed_at <= 14


async def test_leader_stops_before_another_one_leads_when_its_renewals_fail(
    api: FakeApi, candidates: _Candidates, time: ManualClock
) -> None:
    one = await candidates.start("one")
    two = await candidates.start("two")
    api.faults.refuse(503, times=1000, verb="patch", is_renewal=True)
    while not two.is_leading():
        await time.run_for(0.25)
        assert not (one.is_leading() and two.is_leading())
    assert time.monotonic() >= 12


async def test_leader_stops_by_its_own_clock_when_the_server_does_not_answer(
    api: FakeApi, candidates: _Candidates, time: ManualClock
) -> None:
    one = await candidates.start("one")
    api.faults.refuse(503, times=1000)
    await time.run_for(7.9)
    assert one.is_leading()
    await time.run_for(0.2)
    assert not one.is_leading()
    api.faults.clear()
    await time.run_for(1)
    assert one.is_leading()


async def test_leader_stops_when_the_answers_to_its_renewals_are_lost(
    api: FakeApi, candidates: _Candidates, time: ManualClock
) -> None:
    one = await candidates.start("one")
    api.faults.disconnect(is_done=True, times=1000, verb="patch")
    await time.run_for(8.1)
    assert not one.is_leading()


async def test_leadership_counts_from_when_the_renewal_was_sent(
    api: FakeApi, candidates: _Candidates, time: ManualClock
) -> None:
    one = await candidates.start("one")
    gate = asyncio.Event()
    api.faults.hold(gate, verb="patch")
    api.faults.refuse(503, times=1000)
    time.advance(2)
    await api.requests.wait_for(1, verb="patch")
    time.advance(5)
    gate.set()
    await candidates.wait_until_idle(time)
    await time.run_for(2.9)
    assert one.is_leading()
    await time.run_for(0.2)
    assert not one.is_leading()


async def test_unchanged_record_counts_from_when_it_was_received(
    api: FakeApi, candidates: _Candidates, time: ManualClock
) -> None:
    api.add(
        LEASE, "controller", "workron", spec={"holderIdentity": "x", "leaseDurationSeconds": 12}
    )
    gate = asyncio.Event()
    api.faults.hold(gate, verb="get")
    entering = asyncio.create_task(candidates.start("one"))
    await api.requests.wait_for(1, verb="get")
    time.advance(10)
    gate.set()
    one = await entering
    await time.run_for(11)
    assert not one.is_leading()
    await time.run_for(2)
    assert one.is_leading()


async def test_leader_does_not_lead_when_it_resumes_after_a_freeze(
    candidates: _Candidates, time: ManualClock
) -> None:
    frozen = ManualClock()
    one = await candidates.start("one", frozen)
    two = await candidates.start("two")
    await time.run_for(14)
    assert two.is_leading()
    # It resumes, and reads its clock before anything else.
    frozen.advance(14)
    assert not one.is_leading()
    await candidates.wait_until_idle(frozen)
    assert not one.is_leading()
    assert two.is_leading()


async def test_candidate_does_not_take_over_when_its_wall_clock_is_wrong(
    candidates: _Candidates, time: ManualClock
) -> None:
    one = await candidates.start("one")
    ahead = ManualClock()
    ahead.advance(3600)
    two = await candidates.start("two", ahead)
    await time.run_for(4)
    assert (one.is_leading(), two.is_leading()) == (True, False)


async def test_candidate_waits_for_the_duration_that_the_holder_has_written(
    api: FakeApi, candidates: _Candidates, time: ManualClock
) -> None:
    spec = {"holderIdentity": "dead", "leaseDurationSeconds": 40, "leaseTransitions": 3}
    api.add(LEASE, "controller", "workron", spec=spec)
    one = await candidates.start("one")
    await time.run_for(39)
    assert not one.is_leading()
    await time.run_for(2)
    assert one.is_leading()
    assert (api.find(LEASE, "controller", "workron") or {})["spec"]["leaseTransitions"] == 4


async def test_one_candidate_leads_when_two_acquire_at_once(
    api: FakeApi, candidates: _Candidates, time: ManualClock
) -> None:
    api.add(LEASE, "controller", "workron", spec={"holderIdentity": ""})
    gate = asyncio.Event()
    api.faults.hold(gate, verb="patch", times=2)
    one = _Candidate(candidates._access, time, "one")
    two = _Candidate(candidates._access, time, "two")
    candidates._all += [one, two]
    await api.requests.wait_for(2, verb="patch")
    gate.set()
    await time.wait_for_sleepers(2)
    assert sorted((one.is_leading(), two.is_leading())) == [False, True]


async def test_leader_stops_when_another_holder_has_the_lease(
    api: FakeApi, candidates: _Candidates, time: ManualClock
) -> None:
    one = await candidates.start("one")
    api.edit(LEASE, "controller", "workron", spec={"holderIdentity": "thief"})
    await time.run_for(9)
    assert not one.is_leading()
    assert _holder(api) == "thief"
    await one.stop()
    assert _holder(api) == "thief"


async def test_lease_is_created_again_when_it_was_deleted(
    api: FakeApi, candidates: _Candidates, time: ManualClock
) -> None:
    one = await candidates.start("one")
    api.remove(LEASE, "controller", "workron")
    await time.run_for(5)
    assert one.is_leading()
    assert _holder(api) == "one"


async def test_wait_returns_when_the_leadership_changes(
    api: FakeApi, candidates: _Candidates, time: ManualClock
) -> None:
    one = await candidates.start("one")
    await one.election.wait(leading=True)
    lost = asyncio.create_task(one.election.wait(leading=False))
    api.faults.refuse(503, times=1000)
    await time.run_for(7.99)
    assert not lost.done()
    await time.run_for(0.02)
    async with asyncio.timeout(5):
        await lost


async def test_renewal_is_repeated_soon_when_it_fails(
    api: FakeApi, candidates: _Candidates, time: ManualClock
) -> None:
    await candidates.start("one")
    api.faults.refuse(503, verb="patch")
    await time.run_for(3.1)
    assert [request.code for request in api.requests.matching(verb="patch")] == [503, 200]


async def test_error_is_logged_once_while_it_lasts(
    api: FakeApi, candidates: _Candidates, time: ManualClock
) -> None:
    with structlog.testing.capture_logs() as logs:
        await candidates.start("one")
        api.faults.refuse(403, times=1000)
        await time.run_for(60)
    errors = [line["error"] for line in logs if line["event"] == "lease not renewed or read"]
    assert len(errors) == 2  # of the renewal, and of the reads after it
    permission = "to allow it, add the verb patch on leases"
    assert permission in errors[0]


async def test_leader_steps_down_when_a_renewal_is_in_flight(
    api: FakeApi, candidates: _Candidates, time: ManualClock
) -> None:
    one = await candidates.start("one")

    def renewed() -> None:
        moment = time.now().strftime("%Y-%m-%dT%H:%M:%S.999999Z")
        api.edit(LEASE, "controller", "workron", spec={"renewTime": moment})

    api.faults.run_before(renewed, verb="patch")
    await one.stop()
    assert _holder(api) == ""
