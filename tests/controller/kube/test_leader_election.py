"""Who leads, and how soon after another one."""

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
    """An operator that stands for election, by a clock of its own if it is given one."""

    def __init__(self, access: ApiAccess, time: ManualClock, name: str) -> None:
        self.server = ApiClient(access, in_flight=1)
        self.time = time
        lock = LeaseLock(self.server, "workron", "operator", name)
        self.election = LeaderElection(lock, time, random.Random(name), sleep=time.sleep)
        self.task = asyncio.create_task(self.election.run())

    def leads(self) -> bool:
        return self.election.is_leading

    async def stop(self) -> None:
        """End it as SIGTERM does."""
        self.task.cancel()
        await asyncio.wait([self.task])


class _Hall:
    """Where candidates come and go."""

    def __init__(self, access: ApiAccess, time: ManualClock) -> None:
        self._way_in = access
        self._time = time
        self._all: list[_Candidate] = []

    async def enter(self, name: str, time: ManualClock | None = None) -> _Candidate:
        """Stand, and have looked once."""
        candidate = _Candidate(self._way_in, time or self._time, name)
        self._all.append(candidate)
        await self.settled(candidate.time)
        return candidate

    async def settled(self, time: ManualClock) -> None:
        here = [one for one in self._all if one.time is time and not one.task.done()]
        await time.asleep(len(here))

    async def close(self) -> None:
        for candidate in self._all:
            await candidate.stop()
            await candidate.server.__aexit__()


@pytest.fixture
async def hall(access: ApiAccess, time: ManualClock) -> AsyncIterator[_Hall]:
    hall = _Hall(access, time)
    yield hall
    await hall.close()


def _holder(api: FakeApi) -> str:
    found = api.find(LEASE, "operator", "workron")
    assert found is not None
    return str(found["spec"]["holderIdentity"])


async def test_first_to_come_leads(api: FakeApi, hall: _Hall) -> None:
    one = await hall.enter("one")
    two = await hall.enter("two")
    assert (one.leads(), two.leads()) == (True, False)
    assert _holder(api) == "one"


async def test_leader_leads_on_as_long_as_it_renews(hall: _Hall, time: ManualClock) -> None:
    one = await hall.enter("one")
    two = await hall.enter("two")
    await time.go_by(600)
    assert (one.leads(), two.leads()) == (True, False)


async def test_renewal_is_one_request_every_two_seconds(
    api: FakeApi, hall: _Hall, time: ManualClock
) -> None:
    await hall.enter("one")
    before = len(api.requests.all)
    await time.go_by(60)
    assert len(api.requests.all) - before == 30
    assert {asked.verb for asked in api.requests.all[before:]} == {"patch"}


async def test_successor_of_one_that_steps_down_leads_with_its_next_look(
    api: FakeApi, hall: _Hall, time: ManualClock
) -> None:
    one = await hall.enter("one")
    two = await hall.enter("two")
    await one.stop()
    assert (_holder(api), one.leads()) == ("", False)
    await time.go_by(1)
    assert two.leads()


async def test_successor_of_one_that_is_killed_leads_within_15_seconds(
    api: FakeApi, hall: _Hall, time: ManualClock
) -> None:
    of_one = ManualClock()
    await hall.enter("one", of_one)
    two = await hall.enter("two")
    for _ in range(60):
        await of_one.go_by(0.5)
        await time.go_by(0.5)
    # Whose clock stands still from here on never does anything again.
    killed_at = time.monotonic()
    while not two.leads():
        assert _holder(api) == "one"
        await time.go_by(0.25)
    assert 10 <= time.monotonic() - killed_at <= 14


async def test_leader_that_is_cut_off_has_stopped_before_another_begins(
    api: FakeApi, hall: _Hall, time: ManualClock
) -> None:
    one = await hall.enter("one")
    two = await hall.enter("two")
    api.faults.refuse(503, times=1000, verb="patch", is_renewal=True)
    while not two.leads():
        await time.go_by(0.25)
        assert not (one.leads() and two.leads())
    assert time.monotonic() >= 12


async def test_leader_without_an_answer_stops_by_its_own_clock(
    api: FakeApi, hall: _Hall, time: ManualClock
) -> None:
    one = await hall.enter("one")
    api.faults.refuse(503, times=1000)
    await time.go_by(7.9)
    assert one.leads()
    await time.go_by(0.2)
    assert not one.leads()
    api.faults.clear()
    await time.go_by(1)
    assert one.leads()


async def test_leader_whose_renewals_are_lost_on_the_way_does_not_believe_in_them(
    api: FakeApi, hall: _Hall, time: ManualClock
) -> None:
    one = await hall.enter("one")
    api.faults.disconnect(is_done=True, times=1000, verb="patch")
    await time.go_by(8.1)
    assert not one.leads()


async def test_belief_counts_from_when_the_renewal_was_sent(
    api: FakeApi, hall: _Hall, time: ManualClock
) -> None:
    one = await hall.enter("one")
    gate = asyncio.Event()
    api.faults.hold(gate, verb="patch")
    api.faults.refuse(503, times=1000)
    time.turn(2)
    await api.requests.wait_for(1, verb="patch")
    time.turn(5)
    gate.set()
    await hall.settled(time)
    await time.go_by(2.9)
    assert one.leads()
    await time.go_by(0.2)
    assert not one.leads()


async def test_silence_of_a_holder_counts_from_when_its_record_had_come(
    api: FakeApi, hall: _Hall, time: ManualClock
) -> None:
    api.add(LEASE, "operator", "workron", spec={"holderIdentity": "x", "leaseDurationSeconds": 12})
    gate = asyncio.Event()
    api.faults.hold(gate, verb="get")
    entering = asyncio.create_task(hall.enter("one"))
    await api.requests.wait_for(1, verb="get")
    time.turn(10)
    gate.set()
    one = await entering
    await time.go_by(11)
    assert not one.leads()
    await time.go_by(2)
    assert one.leads()


async def test_leader_that_was_frozen_leads_no_more(hall: _Hall, time: ManualClock) -> None:
    frozen = ManualClock()
    one = await hall.enter("one", frozen)
    two = await hall.enter("two")
    await time.go_by(14)
    assert two.leads()
    # It wakes, and looks at its clock before it looks at anything else.
    frozen.turn(14)
    assert not one.leads()
    await hall.settled(frozen)
    assert not one.leads()
    assert two.leads()


async def test_candidate_whose_clock_of_day_is_wrong_takes_nothing(
    hall: _Hall, time: ManualClock
) -> None:
    one = await hall.enter("one")
    ahead = ManualClock()
    ahead.turn(3600)
    two = await hall.enter("two", ahead)
    await time.go_by(4)
    assert (one.leads(), two.leads()) == (True, False)


async def test_newcomer_waits_for_as_long_as_the_holder_has_promised(
    api: FakeApi, hall: _Hall, time: ManualClock
) -> None:
    spec = {"holderIdentity": "gone", "leaseDurationSeconds": 40, "leaseTransitions": 3}
    api.add(LEASE, "operator", "workron", spec=spec)
    one = await hall.enter("one")
    await time.go_by(39)
    assert not one.leads()
    await time.go_by(2)
    assert one.leads()
    assert (api.find(LEASE, "operator", "workron") or {})["spec"]["leaseTransitions"] == 4


async def test_of_two_who_take_at_once_one_leads(
    api: FakeApi, hall: _Hall, time: ManualClock
) -> None:
    api.add(LEASE, "operator", "workron", spec={"holderIdentity": ""})
    gate = asyncio.Event()
    api.faults.hold(gate, verb="patch", times=2)
    one = _Candidate(hall._way_in, time, "one")
    two = _Candidate(hall._way_in, time, "two")
    hall._all += [one, two]
    await api.requests.wait_for(2, verb="patch")
    gate.set()
    await time.asleep(2)
    assert sorted((one.leads(), two.leads())) == [False, True]


async def test_renewal_is_not_mistaken_for_the_lease_of_another(
    api: FakeApi, hall: _Hall, time: ManualClock
) -> None:
    one = await hall.enter("one")
    api.edit(LEASE, "operator", "workron", spec={"holderIdentity": "thief"})
    await time.go_by(9)
    assert not one.leads()
    assert _holder(api) == "thief"
    await one.stop()
    assert _holder(api) == "thief"


async def test_lease_that_is_deleted_is_made_anew(
    api: FakeApi, hall: _Hall, time: ManualClock
) -> None:
    one = await hall.enter("one")
    api.remove(LEASE, "operator", "workron")
    await time.go_by(5)
    assert one.leads()
    assert _holder(api) == "one"


async def test_turns_are_waited_for(api: FakeApi, hall: _Hall, time: ManualClock) -> None:
    one = await hall.enter("one")
    await one.election.wait(leading=True)
    lost = asyncio.create_task(one.election.wait(leading=False))
    api.faults.refuse(503, times=1000)
    await time.go_by(7.99)
    assert not lost.done()
    await time.go_by(0.02)
    async with asyncio.timeout(5):
        await lost


async def test_renewal_without_an_answer_is_repeated_soon(
    api: FakeApi, hall: _Hall, time: ManualClock
) -> None:
    await hall.enter("one")
    api.faults.refuse(503, verb="patch")
    await time.go_by(3.1)
    assert [asked.code for asked in api.requests.matching(verb="patch")] == [503, 200]


async def test_trouble_is_said_once(api: FakeApi, hall: _Hall, time: ManualClock) -> None:
    with structlog.testing.capture_logs() as said:
        await hall.enter("one")
        api.faults.refuse(403, times=1000)
        await time.go_by(60)
    troubles = [line["error"] for line in said if line["event"] == "lease not renewed or read"]
    assert len(troubles) == 2  # of the renewal, and of the looks after it
    right = "to allow it, add the verb patch on leases"
    assert right in troubles[0]


async def test_renewal_on_its_way_does_not_keep_one_from_stepping_down(
    api: FakeApi, hall: _Hall, time: ManualClock
) -> None:
    one = await hall.enter("one")

    def renewed() -> None:
        moment = time.now().strftime("%Y-%m-%dT%H:%M:%S.999999Z")
        api.edit(LEASE, "operator", "workron", spec={"renewTime": moment})

    api.faults.run_before(renewed, verb="patch")
    await one.stop()
    assert _holder(api) == ""
