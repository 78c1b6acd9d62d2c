"""A node of a cluster that kind made, which is a container, and what can be done to it.

What is done here is undone by the `with` that did it.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from e2e.containers import docker

if TYPE_CHECKING:
    from collections.abc import Iterator


_SERVER: Final = "kube-apiserver"
_DATABASE_PORT: Final = "5432"


@dataclass(frozen=True)
class Node:
    """One node, by its name."""

    name: str

    def run(self, *words: object, is_checked: bool = True) -> str:
        """Run a program in it."""
        return docker("exec", self.name, *words, is_checked=is_checked).stdout

    def kill(self, pod: dict[str, Any], container: str) -> None:
        """Kill a container of a pod as nothing in it can prevent."""
        status = pod["status"]
        found = [*status["containerStatuses"], *status.get("initContainerStatuses", ())]
        [one] = [each for each in found if each["name"] == container]
        identity = one["containerID"].rpartition("/")[2]
        self.run("ctr", "-n", "k8s.io", "task", "kill", "-s", "SIGKILL", identity)

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Have everything in it stand still, its processes alive and its network mute."""
        docker("pause", self.name)
        try:
            yield
        finally:
            docker("unpause", self.name)

    @contextlib.contextmanager
    def cut_from_database(self, pod: dict[str, Any]) -> Iterator[None]:
        """Drop all that one of its pods sends to the database."""
        rule = ("-s", pod["status"]["podIP"], "-p", "tcp", "--dport", _DATABASE_PORT, "-j", "DROP")
        self.run("iptables", "-I", "FORWARD", *rule)
        try:
            yield
        finally:
            self.run("iptables", "-D", "FORWARD", *rule)

    @contextlib.contextmanager
    def without_api_server(self) -> Iterator[None]:
        """Have the API server stand still, of which this is the node."""
        server = self.run("pidof", _SERVER).strip()
        self.run("kill", "-STOP", server)
        try:
            yield
        finally:
            self.run("kill", "-CONT", server)


def node_of(pod: dict[str, Any]) -> Node:
    """Give the node that a pod is on."""
    return Node(pod["spec"]["nodeName"])
