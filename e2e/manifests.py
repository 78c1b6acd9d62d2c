"""Manifests of the kinds of Workron as Python dicts."""

from typing import Any


def job(name: str, /, command: str = "true", **spec: Any) -> dict[str, Any]:
    """Return a Job."""
    return manifest("Job", name, {"command": command, **spec})


def workflow(name: str, /, *tasks: dict[str, Any], **spec: Any) -> dict[str, Any]:
    """Return a Workflow of these tasks."""
    return manifest("Workflow", name, {"tasks": list(tasks), **spec})


def task(name: str, /, *upstreams: str, command: str = "true", **spec: Any) -> dict[str, Any]:
    """Return a task of a Workflow that waits for the success of its upstreams."""
    return {
        "name": name,
        "command": command,
        "dependsOn": [{"name": one} for one in upstreams],
        **spec,
    }


def pool(name: str, /, **spec: Any) -> dict[str, Any]:
    """Return a WorkerPool."""
    return manifest("WorkerPool", name, spec)


def manifest(kind: str, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    """Return an object of a kind of Workron."""
    header = {"apiVersion": "workron.dev/v1alpha1", "kind": kind}
    return {**header, "metadata": {"name": name}, "spec": spec}
