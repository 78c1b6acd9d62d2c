"""Each value is described, and Helm rejects unknown values by name."""

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


def test_schema_has_exactly_the_described_values() -> None:
    described = {one.key for one in readme.described(_VALUES)}
    assert set(_leaves(_SCHEMA)) - {"global"} == described


def test_schema_allows_no_additional_properties() -> None:
    assert set(_closed(_SCHEMA)) == {True}


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ("databases.existingSecret=x", ["databases"]),
        ("database.exitingSecret=x", ["/database", "exitingSecret"]),
        ("defaultWorkerPool.slot=3", ["/defaultWorkerPool", "slot"]),
        ("workerPools[0].spec.slots=3", ["/workerPools/0", "namespace"]),
        ("controller.replicas=two", ["/controller/replicas"]),
        ("image.digest=latest", ["/image/digest"]),
        ("watchNamespaces=team-a", ["/watchNamespaces"]),
    ],
)
def test_invalid_value_is_rejected_by_name(helm: str, setting: str, words: list[str]) -> None:
    done = chart.render_error(setting, helm=helm)
    assert [word for word in words if word not in done] == []


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (["allNamespaces=true", "workerNamespaces={a}"], "allNamespaces is true, but"),
        (["watchNamespaces={a}", "workerNamespaces={b}"], 'workerNamespaces has "b"'),
        (
            ["workerPools[0].namespace=b,workerPools[0].name=x"],
            'workerPools has b/x, but namespace "b" may not have workers',
        ),
        (["database.sharedRole=true"], "database.sharedRole allows only one namespace"),
        (["database.sharedRole=true", "allNamespaces=true"], "database.sharedRole allows only one"),
    ],
)
def test_contradicting_values_are_rejected(settings: list[str], words: str) -> None:
    assert words in chart.render_error(*settings)


@pytest.mark.parametrize(("given", "done"), [("null", []), ("0", ["0"]), ("1200000", ["1200000"])])
def test_max_worker_connections_is_passed_to_the_controller(given: str, done: list[str]) -> None:
    objects = chart.render(f"database.maxWorkerConnections={given}")
    [container] = chart.pods(objects)["Deployment/workron-controller"]["containers"]
    found = [word for word in container["args"] if word.startswith("--max-worker-connections")]
    assert found == [f"--max-worker-connections={one}" for one in done]


def test_global_values_are_accepted() -> None:
    assert chart.render("global.region=north") == chart.render()


def test_schema_of_a_pool_has_the_fields_of_the_model() -> None:
    model = workerpool.WorkerPoolSpec.model_json_schema(by_alias=True)
    assert set(_SCHEMA["$defs"]["poolSpec"]["properties"]) == set(model["properties"])


def test_worker_pools_are_passed_to_the_controller_unchanged() -> None:
    values = chart.CHART / "ci" / "everything.yaml"
    objects = chart.render(values=values)
    data = chart.find(objects, "ConfigMap", "workron-pools")["data"]
    given = yaml.safe_load(values.read_text())
    assert yaml.safe_load(data["worker-pools.yaml"]) == given["workerPools"]
    assert yaml.safe_load(data["default-worker-pool.yaml"]) == given["defaultWorkerPool"]
    for one in given["workerPools"]:
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
def test_image_has_the_tag_or_the_digest(settings: list[str], image: str) -> None:
    pods = chart.pods(chart.render(*settings))
    [container] = pods["Deployment/workron-controller"]["containers"]
    assert container["image"] == image
    assert pods["Pod/workron-test"]["containers"][0]["image"] == image
