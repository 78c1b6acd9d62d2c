"""From a claim to the task that an executor runs, and from its end to the report on the claim.

Called by `attempts`. What a spec says is read in `workron.core.spec`.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from workron.core import retry
from workron.core.command import OnLeaseLost
from workron.core.states import Reason
from workron.store.protocol import End, Outcome
from workron_worker.executor import Task

if TYPE_CHECKING:
    from workron.core.ports import Rng
    from workron.store.protocol import Claimed
    from workron_worker.executor import Ended

_TOO_LARGE: Final = (
    "the results of its upstreams are larger than 1 MiB together; let them hand on less,"
    " such as the place where the data is"
)
_NO_RETRY: Final = retry.Decision(is_retry=False)


def task_of(claimed: Claimed) -> Task:
    """Say what to run; ValueError if the spec cannot be read."""
    spec = claimed.spec.command
    return Task(
        claim=claimed.claim,
        command=spec.argv or spec.command or "",
        environment={**spec.env, **_names(claimed)},
        output_bytes=spec.output_tail,
        stream_bytes=spec.output_stream,
        inputs=claimed.inputs,
        workdir=spec.workdir,
        timeout=spec.timeout,
        outlives_lease=spec.on_lease_lost is OnLeaseLost.CONTINUE,
    )


def end_of(claimed: Claimed, ended: Ended, rng: Rng) -> End:
    """Report an end, and whether there is another try after it."""
    decision = _decide(claimed, ended, rng)
    return End(
        job=claimed.job,
        claim=claimed.claim,
        fence=claimed.fence,
        outcome=_outcome(ended, is_retry=decision.is_retry),
        reason=Reason.SIGNAL if ended.is_killed else ended.reason,
        message=ended.message,
        exit_code=ended.exit_code,
        delay_seconds=decision.delay.total_seconds(),
        result=ended.result,
        output=ended.output,
    )


def refuse(claimed: Claimed, reason: Reason, message: str) -> End:
    """Report a claim that cannot be run at all."""
    return End(claimed.job, *claimed.right, Outcome.FAILED, reason, message)


def refuse_inputs(claimed: Claimed) -> End:
    """Report a claim whose inputs no worker hands on."""
    return refuse(claimed, Reason.INPUTS_TOO_LARGE, _TOO_LARGE)


def _decide(claimed: Claimed, ended: Ended, rng: Rng) -> retry.Decision:
    if ended.is_killed or ended.reason is None:
        return _NO_RETRY
    return retry.decide(
        claimed.spec.command,
        failures=claimed.failures,
        exit_code=ended.exit_code,
        reason=ended.reason,
        rng=rng,
    )


def _outcome(ended: Ended, *, is_retry: bool) -> Outcome:
    if is_retry:
        return Outcome.RETRY
    return Outcome.FAILED if ended.is_killed or ended.reason else Outcome.SUCCEEDED


def _names(claimed: Claimed) -> dict[str, str]:
    names = {
        "WORKRON_JOB_ID": str(claimed.job),
        "WORKRON_ATTEMPT": str(claimed.attempt),
        "WORKRON_FENCE": str(claimed.fence),
    }
    if claimed.index is not None:
        names["WORKRON_INDEX"] = str(claimed.index)
    if claimed.item is not None:
        names["WORKRON_ITEM"] = _text(claimed.item)
    return names


def _text(item: Any) -> str:
    """Write an item as a manifest would: `true` and `1.5`, and a text as it is."""
    return item if isinstance(item, str) else json.dumps(item)
