"""A real Kubernetes cluster for the length of a session, and kubectl as a person uses it."""

import contextlib
import json
import os
import pathlib
import secrets
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from typing import Any, Final

import pytest

NODE: Final = os.environ.get("WORKRON_E2E_NODE", "")
"""The image of its node; empty: kind's own."""
_REQUIRED: Final = os.environ.get("WORKRON_E2E_CLUSTER") == "required"
_TOOLS: Final = ("docker", "kind", "kubectl")
_PATIENCE_SECONDS: Final = 180
_LOOK_SECONDS: Final = 0.5


class Cluster:
    """One cluster, by its kubeconfig."""

    def __init__(self, config: pathlib.Path) -> None:
        self.config = config
        self.environment = {**os.environ, "KUBECONFIG": str(config)}

    def kubectl(self, *words: object, given: str | None = None) -> str:
        """Run kubectl to its end, and give what it printed."""
        return self.asked(*words, given=given, is_checked=True).stdout

    def asked(
        self, *words: object, given: str | None = None, is_checked: bool = False
    ) -> "subprocess.CompletedProcess[str]":
        """Do the same, also where it fails."""
        done = subprocess.run(
            ["kubectl", *map(str, words)],
            env=self.environment,
            input=given,
            capture_output=True,
            text=True,
            timeout=_PATIENCE_SECONDS,
            check=False,
        )
        assert not (is_checked and done.returncode), done.stderr
        return done

    def apply(self, *manifests: dict[str, Any]) -> None:
        """Apply manifests."""
        self.kubectl("apply", "-f", "-", given=json.dumps({
            "apiVersion": "v1", "kind": "List", "items": list(manifests),
        }))  # fmt: skip

    def status(self, kind: str, name: str) -> dict[str, Any]:
        """Give the status of an object."""
        found: dict[str, Any] = json.loads(self.kubectl("get", kind, name, "-o", "json"))
        return dict(found.get("status", {}))

    def phases(self) -> dict[str, str]:
        """Give the phase of each Job."""
        found = json.loads(self.kubectl("get", "wj", "-o", "json"))["items"]
        return {one["metadata"]["name"]: one["status"].get("phase", "") for one in found}

    def until(self, name: str, wanted: str, kind: str = "wj") -> dict[str, Any]:
        """Wait for an object to be so, `Succeeded` or `Waiting/Upstream`, and give its status."""
        end = time.monotonic() + _PATIENCE_SECONDS
        while True:
            status = self.status(kind, name)
            stands = "/".join(status[one] for one in ("phase", "reason") if status.get(one))
            if stands == wanted:
                return status
            assert time.monotonic() < end, f"{kind}/{name} is {stands}, and not {wanted}"
            time.sleep(_LOOK_SECONDS)


@contextlib.contextmanager
def running() -> Iterator[Cluster]:
    """Have one; without the tools for it, the tests are skipped, or fail where they must run."""
    missing = [tool for tool in _TOOLS if shutil.which(tool) is None]
    if missing and not _REQUIRED:
        pytest.skip(f"no cluster: {', '.join(missing)} not on the PATH")
    name = f"workron-{secrets.token_hex(4)}"
    with tempfile.TemporaryDirectory(prefix="workron-e2e-") as folder:
        config = pathlib.Path(folder) / "config"
        about = ["--name", name, "--kubeconfig", str(config)]
        image = ["--image", NODE] if NODE else []
        create = ["kind", "create", "cluster", "--wait", "180s", *image, *about]
        try:
            made = subprocess.run(create, capture_output=True, text=True, check=False)
            if made.returncode and not _REQUIRED:
                pytest.skip(f"no cluster: {made.stderr.strip()[-500:]}")
            assert made.returncode == 0, made.stderr
            yield Cluster(config)
        finally:
            subprocess.run(["kind", "delete", "cluster", *about], capture_output=True, check=False)
