"""What the answer to a beat asks for, seen against what came and went meanwhile."""

from uuid import UUID

from workron.core.ids import ClaimId, Fence, JobId
from workron.store.types import ClaimRef, HeartbeatReply, HeldClaim, Signal
from workron_worker.claims import ClaimSnapshot, HeartbeatActions, read_heartbeat

A, B = ClaimId(UUID(int=1)), ClaimId(UUID(int=2))
NONE: frozenset[ClaimId] = frozenset()


def _beat(*held: ClaimId, mark: Signal | None = None) -> HeartbeatReply:
    rows = [HeldClaim(JobId(1), claim, Fence(7), mark) for claim in held]
    return HeartbeatReply(rows, is_draining=False, database="x")


def _runs(*claims: ClaimId) -> ClaimSnapshot:
    return ClaimSnapshot(frozenset(claims), frozenset(claims))


def test_beat_asks_for_nothing_when_both_sides_agree() -> None:
    assert read_heartbeat(_beat(A, B), _runs(A, B), _runs(A, B)) == HeartbeatActions(NONE, NONE, [])


def test_command_is_dropped_when_the_store_counts_its_claim_no_more() -> None:
    assert read_heartbeat(_beat(B), _runs(A, B), _runs(A, B)).drop == {A}


def test_claim_that_came_while_the_beat_was_on_its_way_is_not_dropped() -> None:
    assert read_heartbeat(_beat(), _runs(), _runs(A)).drop == NONE


def test_claim_that_came_while_the_beat_was_on_its_way_is_not_released() -> None:
    assert read_heartbeat(_beat(A), _runs(), _runs(A)).release == []


def test_claim_that_ended_while_the_beat_was_on_its_way_is_not_dropped() -> None:
    assert read_heartbeat(_beat(), _runs(A), _runs()).drop == NONE


def test_claim_that_nothing_here_runs_is_released_under_its_own_fence() -> None:
    assert read_heartbeat(_beat(A), _runs(), _runs()).release == [ClaimRef(A, Fence(7))]


def test_claim_that_is_over_and_not_reported_yet_is_not_released() -> None:
    over = ClaimSnapshot(frozenset(), frozenset({A}))
    assert read_heartbeat(_beat(A), _runs(A), over).release == []


def test_claim_whose_report_was_answered_meanwhile_is_not_released() -> None:
    assert read_heartbeat(_beat(A), _runs(A), _runs()).release == []


def test_command_is_killed_when_its_job_is_cancelled_or_out_of_time() -> None:
    assert read_heartbeat(_beat(A, mark=Signal.CANCEL), _runs(A), _runs(A)).kill == {A}
    assert read_heartbeat(_beat(A, mark=Signal.EXPIRE), _runs(A), _runs(A)).kill == {A}


def test_command_goes_on_when_its_job_is_only_held() -> None:
    assert read_heartbeat(_beat(A, mark=Signal.SUSPEND), _runs(A), _runs(A)) == HeartbeatActions(
        NONE, NONE, []
    )
