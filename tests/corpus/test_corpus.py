"""The CRDs and the models agree on each manifest of the corpus, on each scalar and each edit.

`judge` compares with a real API server, which alone evaluates rules.
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
    """Return the rules of a kind, each with its place."""
    return [
        (place + rule.get("fieldPath", ""), rule)
        for place, schema in checker.nodes(checker.SCHEMAS[kind])
        for rule in schema.get("x-kubernetes-validations", ())
    ]


def _named_rules(case: cases.Case) -> set[tuple[str, str, str]]:
    """Return the rules at the place that a manifest names, with the message that it names."""
    (document,) = yaml_reader.read_documents(case.text.encode())
    kind = document.value["kind"]
    place = re.sub(r"\[\d+\]", "[]", f".{case.place}")
    return {
        (kind, at, rule["message"])
        for at, rule in _rules(kind)
        if at == place and case.words in rule["message"]
    }


def _is_about_one_object(place: str, rule: dict[str, Any]) -> bool:
    # One selector of an affinity stands for the other seven.
    return "oldSelf" not in rule["rule"] and "Selector.matchLabels" not in place


_REFUSED = cases.of("refused")


@pytest.mark.parametrize("case", cases.of("good"), ids=_ids)
def test_good_manifest_is_accepted_by_schema_and_models(case: cases.Case) -> None:
    assert _problems(case.text) == []
    assert cases.refusal(case.text) is None


@pytest.mark.parametrize("case", [one for one in _REFUSED if one.means == "schema"], ids=_ids)
def test_manifest_is_rejected_by_the_schema_and_the_models(case: cases.Case) -> None:
    assert case.place in _problems(case.text)
    assert cases.refusal(case.text)


@pytest.mark.parametrize("case", [one for one in _REFUSED if one.means == "rule"], ids=_ids)
def test_manifest_is_rejected_by_the_models_when_a_rule_rejects_it(case: cases.Case) -> None:
    assert _problems(case.text) == []
    assert _named_rules(case)
    assert cases.refusal(case.text)


@pytest.mark.parametrize("case", [one for one in _REFUSED if one.means == "server"], ids=_ids)
def test_manifest_is_rejected_by_the_models_when_every_api_server_rejects_it(
    case: cases.Case,
) -> None:
    assert cases.refusal(case.text)


@pytest.mark.parametrize("case", cases.of("unaccepted"), ids=_ids)
def test_manifest_is_rejected_by_the_models_with_a_message_when_a_cluster_accepts_it(
    case: cases.Case,
) -> None:
    assert _problems(case.text) == []
    assert case.words in str(cases.refusal(case.text))


def test_refused_manifest_names_what_rejects_it_and_where() -> None:
    assert {one.means for one in _REFUSED} == {"schema", "rule", "server"}
    assert {one.means for one in cases.of("unaccepted")} == {"models"}
    without_reason = [
        one.name for one in [*_REFUSED, *cases.of("unaccepted")] if not one.place + one.words
    ]
    assert without_reason == []


def test_every_rule_has_a_manifest_that_it_rejects() -> None:
    shown = {one for case in _REFUSED if case.means == "rule" for one in _named_rules(case)}
    there = {
        (kind, place, rule["message"])
        for kind in checker.SCHEMAS
        for place, rule in _rules(kind)
        if _is_about_one_object(place, rule)
    }
    assert there - shown == set()


@pytest.mark.parametrize("field", scalars.FIELDS)
def test_scalar_is_accepted_by_both_schema_and_models_or_by_neither(field: str) -> None:
    written = {scalar: scalars.job(field, scalar) for scalar in scalars.SCALARS}
    accepted = {scalar for scalar, job in written.items() if not _problems(job)}
    assert accepted == {scalar for scalar, job in written.items() if not cases.refusal(job)}
    assert accepted
    assert accepted < set(written)


@pytest.mark.parametrize("scalar", scalars.OUT_OF_RANGE)
def test_number_is_rejected_when_json_does_not_have_it(scalar: str) -> None:
    assert "outputLimitBytes" in str(cases.refusal(scalars.job("integer", scalar)))


@pytest.mark.parametrize("kind", ["Job", "Workflow"])
def test_every_field_of_a_spec_is_edited(kind: str) -> None:
    assert updates.fields(kind) == set(checker.SCHEMAS[kind]["properties"]["spec"]["properties"])


@pytest.mark.parametrize("update", [*updates.updates()], ids=lambda update: update.name)
def test_edited_objects_are_valid(update: updates.Update) -> None:
    for one in (update.before, update.after):
        assert checker.problems(one) == []
        assert cases.refusal(json.dumps(one)) is None


@pytest.mark.parametrize("kind", ["Job", "Workflow"])
def test_immutable_field_has_a_rule_that_names_it(kind: str) -> None:
    fields = checker.SCHEMAS[kind]["properties"]["spec"]["properties"]
    ruled = {rule["fieldPath"][1:] for _, rule in _rules(kind) if "oldSelf" in rule["rule"]}
    unruled = {*rules.EDITABLE, *updates.UNRULED} - {"cancel", "forceCancel"}
    assert ruled == set(fields) - unruled


def test_spec_of_a_pool_can_be_edited() -> None:
    assert [rule for _, rule in _rules("WorkerPool") if "oldSelf" in rule["rule"]] == []
