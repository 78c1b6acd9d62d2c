"""What an installation says of its pools; made by the command, used by all parts here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pathlib


@dataclass(frozen=True, slots=True)
class PoolSettings:
    """What no WorkerPool says of itself."""

    image: str
    """Of agents, and of commands where a pool names none."""
    home: str = "default"
    """The namespace of the installation, with its service account in it."""
    template: pathlib.Path | None = None
    """The spec of the pool that is made where jobs want `default`; None: none is made."""
    asked: pathlib.Path | None = None
    """More pools, as the values of the chart name them."""
    is_role_shared: bool = False
    """Whether workers log in as the operator does, for want of roles of their own."""

    def enabling(self, namespace: str) -> str:
        """Word the one command that lets workers into a namespace."""
        return (
            "kubectl create rolebinding workron-pools --clusterrole=workron-pools"
            f" --serviceaccount={self.home}:workron-controller --namespace {namespace}"
        )
