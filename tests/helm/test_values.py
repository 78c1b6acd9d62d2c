"""What may be set: each value is described, and what is not one is refused by its name."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from helm import readme
from tests.helm import chart
from workron.core.model import workerpool

_SCHEMA: dict[str, Any] = json.loads((chart.CHART / "values.schema.json").read_text())
_VALUES = (chart.CHART / "values.yaml").read_text()


def _leaves(schema: dict[str, Any], above: str = "") -> Iterator[str]:
    for name, inner in schema["properties"].items():
        if "properties" in inner:
            yield from _leaves(inner, f"{above}{name}.")
        else:
            yield f"{above}{name}"


def _closed(schema: dict[str, Any]) -> Iterator[bool]:
    if "properties" in schema:
        yield schema["additionalProperties"] is False
    for inner in [*schema.get("properties", {}).values(), *schema.get("$defs", {}).values()]:
        yield from _closed(inner)


def test_schema_knows_what_is_described_and_no_more() -> None:
    described = {one.key for one in readme.described(_VALUES)}
    assert set(_leaves(_SCHEMA)) - {"global"} == described


def test_schema_is_open_nowhere() -> None:
    assert set(_closed(_SCHEMA)) == {True}


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ("databases.existingSecret=x", ["databases"]),
        ("database.exitingSecret=x", ["/database", "exitingSecret"]),
        ("defaultPool.slot=3", ["/defaultPool", "slot"]),
        ("pools[0].spec.slots=3", ["/pools/0", "namespace"]),
        ("controller.replicas=two", ["/controller/replicas"]),
        ("image.digest=latest", ["/image/digest"]),
        ("watchNamespaces=team-a", ["/watchNamespaces"]),
    ],
)
def test_value_that_does_not_fit_is_named(helm: str, setting: str, words: list[str]) -> None:
    said = chart.refusal(setting, helm=helm)
    assert [word for word in words if word not in said] == []


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (["allNamespaces=true", "poolNamespaces={a}"], "allNamespaces is true, but"),
        (["watchNamespaces={a}", "poolNamespaces={b}"], 'poolNamespaces has "b"'),
        (
            ["pools[0].namespace=b,pools[0].name=x"],
            'pools has b/x, but no workers may be made in "b"',
        ),
        (["database.sharedRole=true"], "database.sharedRole is for a single namespace"),
        (["database.sharedRole=true", "allNamespaces=true"], "database.sharedRole is for a single"),
    ],
)
def test_values_that_contradict_each_other_are_refused(settings: list[str], words: str) -> None:
    assert words in chart.refusal(*settings)


@pytest.mark.parametrize(("given", "said"), [("null", []), ("0", ["0"]), ("1200000", ["1200000"])])
def test_connections_of_workers_are_those_of_the_values(given: str, said: list[str]) -> None:
    objects = chart.render(f"database.connections={given}")
    [container] = chart.pods(objects)["Deployment/workron-controller"]["containers"]
    found = [word for word in container["args"] if word.startswith("--connections")]
    assert found == [f"--connections={one}" for one in said]


def test_values_of_a_chart_around_this_one_are_let_be() -> None:
    assert chart.render("global.region=north") == chart.render()


def test_spec_of_a_pool_has_the_fields_of_the_model() -> None:
    model = workerpool.WorkerPoolSpec.model_json_schema(by_alias=True)
    assert set(_SCHEMA["$defs"]["poolSpec"]["properties"]) == set(model["properties"])


def test_pools_reach_the_controller_as_they_were_given() -> None:
    values = chart.CHART / "ci" / "everything.yaml"
    objects = chart.render(values=values)
    data = chart.find(objects, "ConfigMap", "workron-pools")["data"]
    given = yaml.safe_load(values.read_text())
    assert yaml.safe_load(data["pools.yaml"]) == given["pools"]
    assert yaml.safe_load(data["default-pool.yaml"]) == given["defaultPool"]
    for one in given["pools"]:
        workerpool.WorkerPoolSpec.model_validate(one["spec"])


@pytest.mark.parametrize(
    ("settings", "image"),
    [
        ([], "workron-controller:0.1.0"),
        (["image.repository=here/it", "image.tag=v7"], "here/it:v7"),
        (
            ["image.tag=v7", f"image.digest=sha256:{'a' * 64}"],
            f"workron-controller@sha256:{'a' * 64}",
        ),
    ],
)
def test_image_is_named_by_tag_or_digest(settings: list[str], image: str) -> None:
    pods = chart.pods(chart.render(*settings))
    [container] = pods["Deployment/workron-controller"]["containers"]
    assert container["image"] == image
    assert pods["Pod/workron-test"]["containers"][0]["image"] == image
