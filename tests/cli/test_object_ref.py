"""References to jobs and workflows on the command line."""

import pytest

from workron.cli import object_ref
from workron.core import errors
from workron.core.plan import Kind


@pytest.mark.parametrize(
    ("text", "kind", "readings"),
    [
        ("etl", None, [("here", "etl", None, None)]),
        ("etl/load", None, [("here", "etl", "load", None), ("etl", "load", None, None)]),
        ("etl/load/3", None, [("here", "etl", "load", 3), ("etl", "load", "3", None)]),
        ("team/etl/load", None, [("team", "etl", "load", None)]),
        ("team/etl/load/3", None, [("team", "etl", "load", 3)]),
        ("job/hello", Kind.JOB, [("here", "hello", None, None)]),
        (
            "job/team/a.b",
            Kind.JOB,
            [("here", "team", "a.b", None), ("team", "a.b", None, None), ("team", "a", "b", None)],
        ),
        ("WORKFLOW/etl", Kind.WORKFLOW, [("here", "etl", None, None)]),
        ("job", None, [("here", "job", None, None)]),
        ("etl.load", None, [("here", "etl.load", None, None), ("here", "etl", "load", None)]),
        (
            "a.etl.load.3",
            None,
            [
                ("here", "a.etl.load.3", None, None),
                ("here", "a.etl", "load", 3),
                ("here", "a.etl.load", "3", None),
            ],
        ),
    ],
)
def test_reference_is_parsed(
    text: str, kind: Kind | None, readings: list[tuple[str, str, str | None, int | None]]
) -> None:
    wanted = object_ref.parse(text)
    assert wanted.kind is kind
    found = [(one.namespace, one.name, one.task, one.index) for one in wanted.readings("here")]
    assert found == readings


@pytest.mark.parametrize(
    "text", ["", "/", "etl/", "/load", "n/a/b/c", "n/a/b/-1", "n/a/b/1/2", "n/a/b/²"]
)
def test_reference_is_refused_with_an_example_when_it_is_invalid(text: str) -> None:
    with pytest.raises(errors.InputError, match="like etl, job/hello, etl/transform/3 or team/etl"):
        object_ref.parse(text)
