"""The definitions and the models agree on each manifest of the corpus, on each scalar and edit.

What only a real API server can judge, `judge` asks it: rules above all.
"""

import functools
import json
import re
from typing import Any

import pytest

from tests.corpus import cases, checker, scalars, updates
from workron.core.manifest import yaml_reader
from workron_controller.crds import rules


def _ids(case: cases.Case) -> str:
    return case.name


def _problems(manifest: str) -> list[str]:
    (document,) = yaml_reader.read_documents(manifest.encode())
    return checker.problems(document.value)


@functools.cache
def _rules(kind: str) -> list[tuple[str, dict[str, Any]]]:
    """The rules of a kind, each with the place that it is about."""
    return [
        (place + rule.get("fieldPath", ""), rule)
        for place, schema in checker.nodes(checker.SCHEMAS[kind])
        for rule in schema.get("x-kubernetes-validations", ())
    ]


def _shown(case: cases.Case) -> set[tuple[str, str, str]]:
    """The rules that are in the place that a manifest names, and say what it says."""
    (document,) = yaml_reader.read_documents(case.text.encode())
    kind = document.value["kind"]
    place = re.sub(r"\[\d+\]", "[]", f".{case.place}")
    return {
        (kind, at, rule["message"])
        for at, rule in _rules(kind)
        if at == place and case.words in rule["message"]
    }


def _is_about_one_object(place: str, rule: dict[str, Any]) -> bool:
    # One selector of an affinity is as good as the other seven.
    return "oldSelf" not in rule["rule"] and "Selector.matchLabels" not in place


_REFUSED = cases.of("refused")


@pytest.mark.parametrize("case", cases.of("good"), ids=_ids)
def test_good_manifest_is_taken_by_schema_and_models(case: cases.Case) -> None:
    assert _problems(case.text) == []
    assert cases.refusal(case.text) is None


@pytest.mark.parametrize("case", [one for one in _REFUSED if one.means == "schema"], ids=_ids)
def test_manifest_is_refused_by_the_schema_at_its_place_and_by_the_models(case: cases.Case) -> None:
    assert case.place in _problems(case.text)
    assert cases.refusal(case.text)


@pytest.mark.parametrize("case", [one for one in _REFUSED if one.means == "rule"], ids=_ids)
def test_manifest_that_a_rule_refuses_is_refused_by_the_models_too(case: cases.Case) -> None:
    assert _problems(case.text) == []
    assert _shown(case)
    assert cases.refusal(case.text)


@pytest.mark.parametrize("case", [one for one in _REFUSED if one.means == "server"], ids=_ids)
def test_manifest_that_any_api_server_refuses_is_refused_by_the_models_too(
    case: cases.Case,
) -> None:
    assert cases.refusal(case.text)


@pytest.mark.parametrize("case", cases.of("unaccepted"), ids=_ids)
def test_manifest_that_the_cluster_takes_is_refused_by_the_models_in_words(
    case: cases.Case,
) -> None:
    assert _problems(case.text) == []
    assert case.words in str(cases.refusal(case.text))


def test_manifest_says_by_what_and_where_it_is_refused() -> None:
    assert {one.means for one in _REFUSED} == {"schema", "rule", "server"}
    assert {one.means for one in cases.of("unaccepted")} == {"models"}
    silent = [one.name for one in [*_REFUSED, *cases.of("unaccepted")] if not one.place + one.words]
    assert silent == []


def test_rule_is_shown_by_a_manifest_that_it_refuses() -> None:
    shown = {one for case in _REFUSED if case.means == "rule" for one in _shown(case)}
    there = {
        (kind, place, rule["message"])
        for kind in checker.SCHEMAS
        for place, rule in _rules(kind)
        if _is_about_one_object(place, rule)
    }
    assert there - shown == set()


@pytest.mark.parametrize("field", scalars.FIELDS)
def test_scalar_is_taken_by_schema_and_models_or_by_neither(field: str) -> None:
    written = {scalar: scalars.job(field, scalar) for scalar in scalars.SCALARS}
    taken = {scalar for scalar, job in written.items() if not _problems(job)}
    assert taken == {scalar for scalar, job in written.items() if not cases.refusal(job)}
    assert taken
    assert taken < set(written)


@pytest.mark.parametrize("scalar", scalars.UNSAYABLE)
def test_number_that_json_has_not_is_refused(scalar: str) -> None:
    assert "outputLimitBytes" in str(cases.refusal(scalars.job("integer", scalar)))


@pytest.mark.parametrize("kind", ["Job", "Workflow"])
def test_every_field_of_a_spec_is_edited(kind: str) -> None:
    assert updates.fields(kind) == set(checker.SCHEMAS[kind]["properties"]["spec"]["properties"])


@pytest.mark.parametrize("update", [*updates.updates()], ids=lambda update: update.name)
def test_edit_is_of_objects_that_are_good_themselves(update: updates.Update) -> None:
    for one in (update.before, update.after):
        assert checker.problems(one) == []
        assert cases.refusal(json.dumps(one)) is None


@pytest.mark.parametrize("kind", ["Job", "Workflow"])
def test_field_that_cannot_be_edited_has_a_rule_that_names_it(kind: str) -> None:
    fields = checker.SCHEMAS[kind]["properties"]["spec"]["properties"]
    ruled = {rule["fieldPath"][1:] for _, rule in _rules(kind) if "oldSelf" in rule["rule"]}
    assert ruled == {field for field in fields if field not in rules.EDITABLE} | {"cancel"}


def test_spec_of_a_pool_can_be_edited() -> None:
    assert [rule for _, rule in _rules("WorkerPool") if "oldSelf" in rule["rule"]] == []
