"""From a claim to the task that an executor runs, and from its end to the report on the claim.

Called by `loop`. A spec is read with the models that let it in; fields that say nothing about
running a command, or that a newer program wrote, are left alone.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from workron.core import output, retry
from workron.core.model.command import CommandSpec, OnLeaseLost
from workron.core.model.record import field_names
from workron.core.states import Reason
from workron.store.protocol import End, Outcome
from workron_worker.executor import Task

if TYPE_CHECKING:
    from collections.abc import Mapping

    from workron.core.ports import Rng
    from workron.store.protocol import Claimed
    from workron_worker.executor import Ended

_FIELDS: Final = field_names(CommandSpec)


def task_of(claimed: Claimed) -> Task:
    """Say what to run; ValueError if the spec cannot be read."""
    spec = CommandSpec.parse(_known(claimed.spec))
    return Task(
        claim=claimed.claim,
        command=spec.argv or spec.command or "",
        environment={one.name: one.value for one in spec.env} | _names(claimed),
        output_bytes=spec.output_tail,
        stream_bytes=spec.output_stream,
        inputs=claimed.inputs or {},
        workdir=spec.workdir,
        timeout=spec.timeout,
        outlives_lease=spec.on_lease_lost is OnLeaseLost.CONTINUE,
    )


def _known(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out what this program does not know; and it streams what it can of what is asked."""
    known = {k: v for k, v in spec.items() if k in _FIELDS}
    wanted = known.get("outputStream")
    if isinstance(wanted, int) and wanted > output.STREAM_BYTES:
        known["outputStream"] = output.STREAM_BYTES
    return known


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


def _decide(claimed: Claimed, ended: Ended, rng: Rng) -> retry.Decision:
    if ended.is_killed or ended.reason is None:
        return retry.Decision(is_retry=False)
    return retry.decide(
        retry.policy_of(claimed.spec),
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
