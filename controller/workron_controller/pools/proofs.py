"""What proves that nothing of a pod runs any more, so that its worker's lease need not pass. Pure.

That a pod was deleted is no proof: by force it is gone from the API server at once, and its
processes run on where no kubelet hears of it. Nor is a phase alone, which others than the kubelet
write.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from workron_controller.pools.sight import Pod

_OUT_OF_SERVICE: Final = "node.kubernetes.io/out-of-service"
"""Set by a person who knows that the machine is off; Kubernetes itself relies on it."""


def of_kubelet(pod: Pod) -> str | None:
    """Say that the pod's own node has seen the end of all that was in it."""
    if pod.is_over and pod.containers and all(one.has_ended for one in pod.containers):
        return f"the kubelet reported that all containers of pod {pod.name} have ended"
    return None


def of_node(name: str, node: Mapping[str, Any] | None) -> str | None:
    """Say that a node is no more, or off for certain; None stands for one that does not exist."""
    if node is None:
        return f"node {name} does not exist any more"
    taints = (node.get("spec") or {}).get("taints") or ()
    if any(taint.get("key") == _OUT_OF_SERVICE for taint in taints):
        return f"node {name} is out of service"
    return None
