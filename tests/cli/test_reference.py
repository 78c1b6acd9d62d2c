"""How a person points at a job."""

import pytest

from workron.cli import reference
from workron.cli.reference import Reference
from workron.core import errors
from workron.core.plan import Kind


@pytest.mark.parametrize(
    ("text", "kind", "rest"),
    [
        ("etl", None, ("etl", None, None)),
        ("etl/load", None, ("etl", "load", None)),
        ("etl/load/3", None, ("etl", "load", 3)),
        ("job/hello", Kind.JOB, ("hello", None, None)),
        ("WORKFLOW/etl/load/0", Kind.WORKFLOW, ("etl", "load", 0)),
        ("job", None, ("job", None, None)),
        ("workflow/job/x", Kind.WORKFLOW, ("job", "x", None)),
        ("a.b/c", None, ("a.b", "c", None)),
    ],
)
def test_reference_is_read(
    text: str, kind: Kind | None, rest: tuple[str, str | None, int | None]
) -> None:
    assert reference.parse(text) == Reference(text, kind, *rest)


@pytest.mark.parametrize("text", ["", "/", "etl/", "/load", "a/b/c", "a/b/-1", "a/b/1/2", "a/b/²"])
def test_what_is_no_reference_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(errors.InputError, match="like etl, job/hello or etl/transform/3"):
        reference.parse(text)


def test_part_of_a_workflow_is_refused_where_only_the_whole_makes_sense() -> None:
    with pytest.raises(errors.InputError, match="this command takes it whole: etl"):
        reference.parse_root("etl/load")
