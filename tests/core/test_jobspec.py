"""The worker reads the same values from a stored spec as the models, and rejects the same specs."""

import json
import pathlib
import re
import uuid
from collections.abc import Iterator
from typing import Any

import hypothesis
import pydantic
import pytest
from hypothesis import strategies as st

from workron.core import jobspec, planner
from workron.core.jobspec import Command
from workron.core.manifest import load
from workron.core.model.job import CommandSpec, Job
from workron.core.model.workflow import Workflow
from workron.core.plan import Plan

_GOOD = pathlib.Path(__file__).parent / "manifest" / "corpus" / "good"
_TEXTS = st.sampled_from(
    ["x", "true", "", " ", "é", "A\0", "\ud800", "X=1", "WORKRON_X", "y" * 300]
)
_LARGE = st.sampled_from(["z" * 4096, "z" * 128_000, "z" * 128_001, "z" * 131_072])
_DURATIONS = st.sampled_from(["0s", "1ms", "1h30m", "87600h", "87601h", "-1s", "5", "0.1ms", ""])
_NUMBERS = st.sampled_from(
    [-1, 0, 1, 2, 100, 101, 255, 256, 65536, 2**20, 1.0, 2.5, 100.5, float("nan"), float("inf")]
)
_ODD = st.sampled_from([None, True, False, [], {}, "x", 1, 1.5, [None], {"x": 1}])
_CODES = st.lists(_NUMBERS | _ODD, max_size=3) | st.lists(st.integers(1, 255), max_size=3)
_VARIABLES = st.fixed_dictionaries(
    {"name": st.sampled_from(["A", "B", "C"]) | _TEXTS},
    optional={
        "value": _TEXTS | _LARGE | st.none(),
        "fromEnv": st.just("A") | _TEXTS | _ODD,
        "more": st.just(1),
    },
)
_FINE = {
    "env": st.lists(
        st.fixed_dictionaries(
            {"name": st.sampled_from(["A", "B"])}, optional={"value": st.just("1")}
        )
    ),
    "workdir": st.just("/x"),
    "shell": st.sampled_from(["bash", ["bash", "-e", "-c"], ["sh", ""]]),
    "maxAttempts": st.integers(1, 100),
    "backoff": st.fixed_dictionaries(
        {}, optional={"initial": st.just("2s"), "factor": st.floats(1, 100), "max": st.just("1h")}
    ),
    "retryOn": st.lists(st.integers(1, 9), max_size=2),
    "failOn": st.lists(st.integers(5, 255), max_size=2),
    "timeout": st.just("90s"),
    "onLeaseLost": st.sampled_from(["kill", "continue"]),
    "outputLimitBytes": st.integers(0, jobspec.OUTPUT_LIMIT["le"]),
    "outputStreamBytes": st.integers(0, jobspec.OUTPUT_STREAM["le"]),
}
_WILD = {
    "command": _TEXTS | _LARGE | _ODD,
    "argv": st.lists(_TEXTS | _LARGE | _ODD, max_size=3) | _ODD,
    "env": st.lists(_VARIABLES | _ODD, max_size=3) | _ODD,
    "workdir": _TEXTS | _LARGE | _ODD,
    "shell": st.lists(_TEXTS | _LARGE | _ODD, max_size=3) | _TEXTS | _LARGE | _ODD,
    "maxAttempts": _NUMBERS | _ODD,
    "backoff": st.fixed_dictionaries(
        {}, optional={"initial": _DURATIONS | _ODD, "factor": _NUMBERS | _ODD, "max": _DURATIONS}
    )
    | _ODD,
    "retryOn": _CODES | _ODD,
    "failOn": _CODES | _ODD,
    "timeout": _DURATIONS | _ODD,
    "onLeaseLost": st.sampled_from(["kill", "continue", "Kill", ""]) | _ODD,
    "outputLimitBytes": _NUMBERS | _ODD,
    "outputStreamBytes": _NUMBERS | _ODD,
}


@st.composite
def _bodies(draw: st.DrawFn) -> dict[str, Any]:
    """Draw a spec of which at most two fields are unusual."""
    body: dict[str, Any] = draw(st.fixed_dictionaries({}, optional=_FINE))
    body |= draw(st.sampled_from([{"command": "x"}, {"argv": ["x", ""]}]))
    if "argv" in body:
        body.pop("shell", None)
    for field in draw(st.lists(st.sampled_from(sorted(_WILD)), max_size=2)):
        body[field] = draw(_WILD[field])
    return body


def _of_model(model: CommandSpec) -> Command:
    """Convert the model to what the worker reads."""
    fields: dict[str, Any] = {name: getattr(model, name) for name in Command.__struct_fields__}
    backoff: Any = model.backoff
    fields["env"] = tuple(jobspec.Variable(one.name, one.value, one.from_env) for one in model.env)
    fields["backoff"] = jobspec.BackoffPolicy(backoff.initial, backoff.factor, backoff.max)
    return Command(**fields)


def _plan(resource: Job | Workflow) -> Plan:
    if isinstance(resource, Job):
        return planner.plan_job(resource, uuid.UUID(int=1))
    return planner.plan_workflow(resource, uuid.UUID(int=1))


def _stored() -> Iterator[Any]:
    for file in sorted(_GOOD.iterdir()):
        for manifest in load.load([load.ManifestSource("f", file.read_bytes())]):
            if isinstance(manifest.resource, Job | Workflow):
                specs = _plan(manifest.resource).encode_specs()
                bodies = (json.loads(text) for _, text in specs)
                yield from (one for one in bodies if "command" in one or "argv" in one)


def test_reader_has_the_defaults_of_the_model() -> None:
    assert jobspec.read({"command": "x"}) == _of_model(CommandSpec.parse({"command": "x"}))
    assert jobspec.read({"command": "x"}) == Command("x")


@hypothesis.given(_bodies())
def test_reader_accepts_and_rejects_the_same_specs_as_the_model(
    body: dict[str, Any],
) -> None:
    # The reader lowers limits that are higher than its own.
    for field, bounds in (
        ("outputLimitBytes", jobspec.OUTPUT_LIMIT),
        ("outputStreamBytes", jobspec.OUTPUT_STREAM),
    ):
        if type(body.get(field)) is int:
            body[field] = min(body[field], bounds["le"])
    try:
        expected = _of_model(CommandSpec.parse(body))
    except pydantic.ValidationError:
        with pytest.raises(ValueError, match=r"\w"):
            jobspec.read(body)
    else:
        assert jobspec.read(body) == expected


def test_reader_returns_the_values_of_the_model_for_the_spec_of_every_good_manifest() -> None:
    fields = {field.alias for field in CommandSpec.__pydantic_fields__.values()}
    bodies = list(_stored())
    assert len(bodies) > 5
    for body in bodies:
        known = {name: value for name, value in body.items() if name in fields}
        assert jobspec.read(body) == _of_model(CommandSpec.parse(known))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"argv": ["x"]}, "set exactly one of command and argv"),
        ({"command": 5}, "command: Expected `str | null`, got `int`"),
        ({"env": [{"name": "A", "value": 1}]}, "env[0].value: Expected `str`, got `int`"),
        ({"env": [{"name": "A", "from": "B"}]}, "env[0]: Object contains unknown field `from`"),
        ({"timeout": 90}, "timeout: 90 has no unit; write it as 90s"),
        ({"timeout": "0s"}, "timeout: must be greater than zero"),
        ({"backoff": {"factor": 0}}, "backoff.factor: Expected `float` >= 1.0"),
        ({"onLeaseLost": "wait"}, "onLeaseLost: Invalid enum value 'wait'"),
        ({"retryOn": [7], "failOn": [7]}, "exit code 7 is in retryOn and in failOn"),
    ],
)
def test_error_names_the_field_when_a_spec_is_invalid(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match="^" + re.escape(message)):
        jobspec.read({"command": "x"} | wrong)


@pytest.mark.parametrize(
    ("field", "bounds"),
    [
        ("outputLimitBytes", jobspec.OUTPUT_LIMIT),
        ("outputStreamBytes", jobspec.OUTPUT_STREAM),
    ],
)
def test_reader_lowers_a_limit_when_it_exceeds_that_of_this_version(
    field: str, bounds: jobspec.Bounds
) -> None:
    read = jobspec.read({"command": "x", field: 10**12})
    assert read == jobspec.read({"command": "x", field: bounds["le"]})


def test_reader_ignores_fields_when_they_are_null() -> None:
    nulls: dict[str, Any] = dict.fromkeys(["argv", "env", "timeout", "maxAttempts", "retryOn"])
    nested = {"env": [{"name": "A", "value": None}], "backoff": {"initial": None}}
    assert jobspec.read({"command": "x"} | nulls) == Command("x")
    assert jobspec.read({"command": "x"} | nested) == Command("x", env=(jobspec.Variable("A"),))


def test_reader_ignores_fields_that_it_does_not_know() -> None:
    newer = {"command": "x", "pool": 7, "overlap": "Perhaps", "colour": {"of": "output"}}
    assert jobspec.read(newer) == Command("x")


def test_spec_is_read_once_when_texts_are_equal() -> None:
    one, other = jobspec.of_text('{"command": "once"}'), jobspec.of_text('{"command": "once"}')
    assert one is other
    assert one.command is other.command


def test_spec_is_read_when_its_text_is_a_json_string() -> None:
    quoted = json.dumps('{"command": "x"}')
    assert jobspec.of_text(quoted).command == Command("x")
