"""Manifests as tests write them."""

from typing import Any


def job(name: str, /, command: str = "true", **spec: Any) -> dict[str, Any]:
    """Write a Job down."""
    return made("Job", name, {"command": command, **spec})


def workflow(name: str, /, *tasks: dict[str, Any], **spec: Any) -> dict[str, Any]:
    """Write a Workflow down."""
    return made("Workflow", name, {"tasks": list(tasks), **spec})


def task(name: str, /, *upstreams: str, command: str = "true", **more: Any) -> dict[str, Any]:
    """Write a task down."""
    return {
        "name": name,
        "command": command,
        "dependsOn": [{"name": one} for one in upstreams],
        **more,
    }


def pool(name: str, /, **spec: Any) -> dict[str, Any]:
    """Write a WorkerPool down."""
    return made("WorkerPool", name, spec)


def made(kind: str, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    """Write an object of ours down."""
    about = {"apiVersion": "workron.dev/v1alpha1", "kind": kind}
    return {**about, "metadata": {"name": name}, "spec": spec}
