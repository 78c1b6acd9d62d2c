"""A node of a kind cluster, which is a docker container, and faults injected into it.

Each fault ends with its `with` block.
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
    """One node, given by its name."""

    name: str

    def run(self, *words: object, check: bool = True) -> str:
        """Run a program on it, and return the output."""
        return docker("exec", self.name, *words, check=check).stdout

    def kill(self, pod: dict[str, Any], container: str) -> None:
        """Kill a container of a pod with SIGKILL."""
        status = pod["status"]
        found = [*status["containerStatuses"], *status.get("initContainerStatuses", ())]
        [one] = [each for each in found if each["name"] == container]
        identity = one["containerID"].rpartition("/")[2]
        self.run("ctr", "-n", "k8s.io", "task", "kill", "-s", "SIGKILL", identity)

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Freeze all of its processes; they stay alive, and the node no longer answers."""
        docker("pause", self.name)
        try:
            yield
        finally:
            docker("unpause", self.name)

    @contextlib.contextmanager
    def cut_from_database(self, pod: dict[str, Any]) -> Iterator[None]:
        """Drop all packets that one of its pods sends to the database."""
        rule = ("-s", pod["status"]["podIP"], "-p", "tcp", "--dport", _DATABASE_PORT, "-j", "DROP")
        self.run("iptables", "-I", "FORWARD", *rule)
        try:
            yield
        finally:
            self.run("iptables", "-D", "FORWARD", *rule)

    @contextlib.contextmanager
    def without_api_server(self) -> Iterator[None]:
        """Freeze the API server, which runs on this node."""
        server = self.run("pidof", _SERVER).strip()
        self.run("kill", "-STOP", server)
        try:
            yield
        finally:
            self.run("kill", "-CONT", server)


def node_of(pod: dict[str, Any]) -> Node:
    """Return the node on which a pod runs."""
    return Node(pod["spec"]["nodeName"])
