"""The TRACEPARENT of a job."""

import pytest

from workron.core import trace_context

_ID = "4bf92f3577b34da6a3ce929d0e0e4736"
_PARENT = f"00-{_ID}-00f067aa0ba902b7-01"


def test_trace_id_is_read_from_a_traceparent() -> None:
    assert trace_context.trace_id(_PARENT) == _ID


@pytest.mark.parametrize(
    "text",
    [
        None,
        "",
        _ID,
        _PARENT.upper(),
        f"{_PARENT}\n",
        f"{_PARENT}-more",
        f"ff-{_ID}-00f067aa0ba902b7-01",
        f"00-{'0' * 32}-00f067aa0ba902b7-01",
    ],
)
def test_trace_id_is_none_when_the_traceparent_is_invalid(text: str | None) -> None:
    assert trace_context.trace_id(text) is None


@pytest.mark.parametrize(
    "spec",
    [{}, {"env": None}, {"env": "TRACEPARENT"}, {"env": [1, {"value": 2}]}, {"env": {"a": 1}}],
)
def test_traceparent_is_none_when_a_spec_does_not_set_one(spec: dict[str, object]) -> None:
    assert trace_context.traceparent_of(spec) is None


def test_traceparent_is_added_to_the_environment() -> None:
    carried = trace_context.with_traceparent(
        {"command": "c", "env": [{"name": "A", "value": "1"}]}, _PARENT
    )
    assert carried == {
        "command": "c",
        "env": [{"name": "A", "value": "1"}, {"name": "TRACEPARENT", "value": _PARENT}],
    }
    assert trace_context.traceparent_of(carried) == _PARENT


def test_traceparent_is_kept_when_a_spec_sets_it() -> None:
    own = {"env": [{"name": "TRACEPARENT", "value": "own"}]}
    assert trace_context.with_traceparent(own, _PARENT) == own
