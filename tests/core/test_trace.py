"""The form in which a trace is handed on."""

import pytest

from workron.core import trace_context

_ID = "4bf92f3577b34da6a3ce929d0e0e4736"
_PARENT = f"00-{_ID}-00f067aa0ba902b7-01"


def test_id_is_read_from_a_parent() -> None:
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
def test_what_is_no_parent_has_no_id(text: str | None) -> None:
    assert trace_context.trace_id(text) is None


@pytest.mark.parametrize(
    "spec",
    [{}, {"env": None}, {"env": "TRACEPARENT"}, {"env": [1, {"value": 2}]}, {"env": {"a": 1}}],
)
def test_spec_of_any_form_may_name_no_parent(spec: dict[str, object]) -> None:
    assert trace_context.traceparent_of(spec) is None


def test_parent_is_carried_beside_what_the_environment_has() -> None:
    carried = trace_context.with_traceparent(
        {"command": "c", "env": [{"name": "A", "value": "1"}]}, _PARENT
    )
    assert carried == {
        "command": "c",
        "env": [{"name": "A", "value": "1"}, {"name": "TRACEPARENT", "value": _PARENT}],
    }
    assert trace_context.traceparent_of(carried) == _PARENT


def test_parent_that_a_job_names_itself_stays() -> None:
    own = {"env": [{"name": "TRACEPARENT", "value": "own"}]}
    assert trace_context.with_traceparent(own, _PARENT) == own
