"""Alerts and the dashboard use metrics that exist, and each alert is in the docs."""

import json
import re
from typing import Any

import pytest
import yaml

from tests.controller.workerpools.observed_objects import POOL, spec
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


def _existing_metrics() -> set[str]:
    """Return the metrics in the reference, which is generated from the registries."""
    return set(re.findall(r"^\| `(workron_\w+)` \|", _PAGE, re.MULTILINE))


def _alerts() -> list[dict[str, Any]]:
    [rule] = chart.of_kind(chart.render(*_ON), "PrometheusRule")
    rules: list[dict[str, Any]] = [
        one for group in rule["spec"]["groups"] for one in group["rules"]
    ]
    return rules


def _dashboard() -> dict[str, Any]:
    data = chart.find(chart.render(*_ON), "ConfigMap", "workron-dashboard")["data"]
    dashboard: dict[str, Any] = json.loads(data["workron.json"])
    return dashboard


def _expressions() -> list[str]:
    targets = [one["expr"] for panel in _dashboard()["panels"] for one in panel["targets"]]
    return targets + [one["expr"] for one in _alerts()]


def test_every_metric_in_an_expression_exists() -> None:
    names = {_SHAPES.sub("", name) for text in _expressions() for name in _NAME.findall(text)}
    assert len(names) > 10
    assert names <= _existing_metrics()


def test_how_to_names_nothing_that_is_not_existing_metrics() -> None:
    named = set(re.findall(r"`(workron_[a-z_]+)`", _HOW_TO)) - {"workron_dev_pool"}
    assert len(named) > 5
    assert named <= _existing_metrics()


def test_every_counter_is_used_as_a_rate_or_increase() -> None:
    for text in _expressions():
        for name in re.findall(r"workron_\w+_total\b", text):
            assert re.search(rf"(?:rate|increase)\({name}", text), text


def test_every_alert_is_explained_in_the_how_to() -> None:
    assert set(re.findall(r"^\| `(Workron\w+)` \|", _HOW_TO, re.MULTILINE)) == {
        one["alert"] for one in _alerts()
    }


def test_templates_of_prometheus_are_not_expanded_by_helm() -> None:
    [rule] = [one for one in _alerts() if one["alert"] == "WorkronQueueBacklog"]
    assert "{{ $labels.namespace }}/{{ $labels.pool }}" in rule["annotations"]["summary"]
    assert all({"summary", "description"} <= one["annotations"].keys() for one in _alerts())


def test_panels_have_distinct_positions_and_descriptions() -> None:
    panels = _dashboard()["panels"]
    assert len({(one["gridPos"]["x"], one["gridPos"]["y"]) for one in panels}) == len(panels)
    assert all(one["description"] for one in panels)
    assert len({one["id"] for one in panels}) == len(panels)


def test_service_monitor_scrapes_a_port_of_the_controller() -> None:
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


def test_pod_monitor_matches_ports_and_labels_of_worker_pods() -> None:
    [monitor] = chart.of_kind(chart.render(*_ON), "PodMonitor")
    pod = manifests.pod_template(POOL, spec(), "ours:1", "memory:")
    containers = [*pod["spec"].get("initContainers", ()), *pod["spec"]["containers"]]
    ports = {port["name"] for one in containers for port in one.get("ports", ())}
    assert {one["port"] for one in monitor["spec"]["podMetricsEndpoints"]} <= ports
    labels = pod["metadata"]["labels"]
    assert monitor["spec"]["selector"]["matchLabels"].items() <= labels.items()
    assert set(monitor["spec"]["podTargetLabels"]) <= labels.keys()


@pytest.mark.parametrize("kind", ["ServiceMonitor", "PodMonitor", "PrometheusRule"])
def test_monitoring_is_off_by_default(kind: str) -> None:
    assert chart.of_kind(chart.render(), kind) == []


def test_pod_monitor_selects_the_namespaces_of_workers() -> None:
    for settings, expected in (
        (("workerNamespaces={a,b}",), {"matchNames": ["a", "b"]}),
        (("allNamespaces=true",), {"any": True}),
    ):
        [monitor] = chart.of_kind(chart.render(*_ON, *settings), "PodMonitor")
        assert monitor["spec"]["namespaceSelector"] == expected


def test_rules_file_is_valid_yaml_before_rendering() -> None:
    groups = yaml.safe_load((chart.CHART / "files" / "rules.yaml").read_text())
    assert [one["name"] for one in groups] == ["workron"]
