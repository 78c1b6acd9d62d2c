"""Alerts and dashboard ask for what is measured, and each alert is in the docs."""

import json
import re
from typing import Any

import pytest
import yaml

from tests.controller.pools.seen import POOL, spec
from tests.helm import chart
from workron_controller.workerpools import manifests

_PAGE = (chart.ROOT / "docs" / "reference" / "metrics.md").read_text()
_HOW_TO = (chart.ROOT / "docs" / "how-to" / "monitoring.md").read_text()
_NAME = re.compile(r"\bworkron_\w+")
_SHAPES = re.compile(r"_(?:bucket|sum|count)$")

_ON = (
    "monitoring.serviceMonitor.enabled=true",
    "monitoring.prometheusRule.enabled=true",
    "monitoring.dashboard.enabled=true",
)


def _measured() -> set[str]:
    """Give what the reference says is measured."""
    return set(re.findall(r"^\| `(workron_\w+)` \|", _PAGE, re.MULTILINE))


def _rules() -> list[dict[str, Any]]:
    [rule] = chart.of_kind(chart.render(*_ON), "PrometheusRule")
    rules: list[dict[str, Any]] = [
        one for group in rule["spec"]["groups"] for one in group["rules"]
    ]
    return rules


def _dashboard() -> dict[str, Any]:
    data = chart.find(chart.render(*_ON), "ConfigMap", "workron-dashboard")["data"]
    board: dict[str, Any] = json.loads(data["workron.json"])
    return board


def _asked() -> list[str]:
    targets = [one["expr"] for panel in _dashboard()["panels"] for one in panel["targets"]]
    return targets + [one["expr"] for one in _rules()]


def test_only_what_is_measured_is_asked_for() -> None:
    names = {_SHAPES.sub("", name) for text in _asked() for name in _NAME.findall(text)}
    assert len(names) > 10
    assert names <= _measured()


def test_how_to_names_nothing_that_is_not_measured() -> None:
    named = set(re.findall(r"`(workron_[a-z_]+)`", _HOW_TO)) - {"workron_dev_pool"}
    assert len(named) > 5
    assert named <= _measured()


def test_counter_is_asked_for_its_rise() -> None:
    for text in _asked():
        for name in re.findall(r"workron_\w+_total\b", text):
            assert re.search(rf"(?:rate|increase)\({name}", text), text


def test_every_alert_is_in_the_docs_with_what_to_do() -> None:
    assert set(re.findall(r"^\| `(Workron\w+)` \|", _HOW_TO, re.MULTILINE)) == {
        one["alert"] for one in _rules()
    }


def test_what_prometheus_is_to_expand_has_come_through_helm() -> None:
    [rule] = [one for one in _rules() if one["alert"] == "WorkronQueueWaits"]
    assert "{{ $labels.namespace }}/{{ $labels.pool }}" in rule["annotations"]["summary"]
    assert all({"summary", "description"} <= one["annotations"].keys() for one in _rules())


def test_panels_of_the_dashboard_do_not_overlap_and_explain_themselves() -> None:
    panels = _dashboard()["panels"]
    assert len({(one["gridPos"]["x"], one["gridPos"]["y"]) for one in panels}) == len(panels)
    assert all(one["description"] for one in panels)
    assert len({one["id"] for one in panels}) == len(panels)


def test_ports_that_are_asked_are_those_of_the_containers() -> None:
    objects = chart.render(*_ON)
    [controller] = chart.pods(objects)["Deployment/workron-controller"]["containers"]
    ports = {one["name"] for one in controller["ports"]}
    [monitor] = chart.of_kind(objects, "ServiceMonitor")
    service = chart.find(objects, "Service", "workron-controller")
    assert (
        monitor["spec"]["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
    )
    assert {one["port"] for one in monitor["spec"]["endpoints"]} <= {
        one["name"] for one in service["spec"]["ports"] if one["targetPort"] in ports
    }


def test_workers_are_asked_at_the_port_and_by_the_labels_that_their_pods_have() -> None:
    [monitor] = chart.of_kind(chart.render(*_ON), "PodMonitor")
    pod = manifests.pod_template(POOL, spec(), "ours:1", "memory:")
    containers = [*pod["spec"].get("initContainers", ()), *pod["spec"]["containers"]]
    ports = {port["name"] for one in containers for port in one.get("ports", ())}
    assert {one["port"] for one in monitor["spec"]["podMetricsEndpoints"]} <= ports
    labels = pod["metadata"]["labels"]
    assert monitor["spec"]["selector"]["matchLabels"].items() <= labels.items()
    assert set(monitor["spec"]["podTargetLabels"]) <= labels.keys()


@pytest.mark.parametrize("kind", ["ServiceMonitor", "PodMonitor", "PrometheusRule"])
def test_monitoring_is_off_until_it_is_asked_for(kind: str) -> None:
    assert chart.of_kind(chart.render(), kind) == []


def test_workers_are_looked_for_where_they_may_be_made() -> None:
    for settings, expected in (
        (("poolNamespaces={a,b}",), {"matchNames": ["a", "b"]}),
        (("allNamespaces=true",), {"any": True}),
    ):
        [monitor] = chart.of_kind(chart.render(*_ON, *settings), "PodMonitor")
        assert monitor["spec"]["namespaceSelector"] == expected


def test_rules_are_yaml_by_themselves() -> None:
    groups = yaml.safe_load((chart.CHART / "files" / "rules.yaml").read_text())
    assert [one["name"] for one in groups] == ["workron"]
