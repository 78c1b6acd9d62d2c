"""Nothing is lost when a release is installed, upgraded, rolled back and uninstalled.

Both versions of Helm do so, one after the other on one cluster. Uninstalling leaves what the docs
say: the objects, and the history of all jobs. This file runs last, because it removes the release
that the other files use.
"""

import json
import pathlib
import time
from collections.abc import Iterator
from dataclasses import replace

import pytest

from e2e.manifests import job
from e2e.namespace import KINDS, Namespace, command_waiting_for, wait_until
from e2e.release import RELEASE_NAMESPACE, Release

# Each version of Helm installs its own release, which takes minutes to become ready.
pytestmark = [pytest.mark.timeout(1800), pytest.mark.alone]

_EXAMPLE = pathlib.Path(__file__).parents[2] / "examples" / "job.yaml"
_KUBELET_CACHE_SECONDS = 15


@pytest.fixture(scope="module", autouse=True)
def _remove_shared_release(release: Release) -> None:
    _remove(release)


@pytest.fixture(params=["helm", "helm3"])
def installed(request: pytest.FixtureRequest, release: Release) -> Iterator[Release]:
    """A new release by one version of Helm, removed afterwards with all of its leftovers."""
    one = replace(release, program=request.param)
    one.install()
    yield one
    _remove(one)


def test_jobs_and_history_survive_upgrade_rollback_uninstall_and_reinstall(
    installed: Release, namespace: Namespace
) -> None:
    installed.helm("test", "workron")
    namespace.kubectl("apply", "-f", _EXAMPLE)
    namespace.kubectl("wait", "--for=condition=Complete", "wj/hello", "--timeout=120s")

    namespace.apply(job("long", command_waiting_for("long")))
    pod = namespace.pod_running("long")
    password = _password(installed)
    installed.upgrade("--set", "controller.statusWritesPerSecond=50")
    installed.rollback()
    assert _password(installed) == password
    namespace.finish_commands(pod, "long")
    assert namespace.wait_for_phase("long", "Succeeded")["attempts"] == 1

    installed.uninstall()
    assert namespace.phases() == {"hello": "Succeeded", "long": "Succeeded"}
    assert (
        namespace.cluster.try_kubectl(
            "get", "pvc/data-workron-database-0", "-n", RELEASE_NAMESPACE
        ).returncode
        == 0
    )
    assert _password(installed) == password

    installed.install()
    items = json.loads(installed.workron("get", "-n", namespace.name, "-o", "json"))["items"]
    assert {one["metadata"]["name"] for one in items} == {"hello", "long"}
    assert namespace.status("hello")["attempts"] == 1


def test_job_names_the_command_that_enables_its_namespace_when_it_is_not_enabled(
    installed: Release,
) -> None:
    cluster = installed.cluster
    cluster.kubectl("create", "namespace", "elsewhere")
    try:
        disabled = Namespace(cluster, "elsewhere")
        disabled.kubectl("apply", "-f", _EXAMPLE)
        message = disabled.wait_for_phase("hello", "Waiting/NamespaceNotEnabled")["message"]
        command = message[message.index("kubectl ") :].split()[1:]
        cluster.kubectl(*command)
        disabled.wait_for_phase("hello", "Succeeded")
    finally:
        cluster.kubectl("delete", "namespace", "elsewhere")


def _password(release: Release) -> str:
    path = ("-o", "jsonpath={.data.password}")
    return release.cluster.kubectl(
        "get", "secret", "workron-database", "-n", RELEASE_NAMESPACE, *path
    )


def _remove(release: Release) -> None:
    """Uninstall a release, and delete what uninstalling leaves."""
    cluster = release.cluster
    release.uninstall()
    cluster.kubectl(
        "delete", "pvc/data-workron-database-0", "secret/workron-database", "-n", RELEASE_NAMESPACE
    )
    cluster.kubectl("delete", "crd", *(f"{kind}.workron.dev" for kind in KINDS))
    pods = ("get", "pods", "-A", "-l", "app.kubernetes.io/name=workron-worker", "-o", "name")
    wait_until(lambda: not cluster.kubectl(*pods), "no worker is left")
    # The Secret is immutable, and the kubelet caches it for a while after its last pod has gone: a
    # new database would be initialized with the old password.
    time.sleep(_KUBELET_CACHE_SECONDS)
