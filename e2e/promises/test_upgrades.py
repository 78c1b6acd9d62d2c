"""A release is installed from nothing, changed, rolled back and taken away, and loses nothing.

With both versions of Helm, one after the other on one cluster. What uninstalling leaves is what the
docs say: the objects, and the history of all jobs. It comes last, for it takes the release that the
other files use.
"""

import json
import pathlib
import shutil
import time
from collections.abc import Iterator
from dataclasses import replace

import pytest

from e2e.manifests import job
from e2e.place import KINDS, Place, until, waits_for
from e2e.release import HOME, Release

# Each release takes its time to be ready, and is made anew for each version.
pytestmark = [pytest.mark.timeout(1800), pytest.mark.alone]

_EXAMPLE = pathlib.Path(__file__).parents[2] / "examples" / "job.yaml"
_FORGETS_SECONDS = 15


@pytest.fixture(scope="module", autouse=True)
def _nothing_at_first(release: Release) -> None:
    _remove(release)


@pytest.fixture(params=["helm", "helm3"])
def installed(request: pytest.FixtureRequest, release: Release) -> Iterator[Release]:
    """A release from nothing, by a version of Helm, of which nothing is left."""
    if shutil.which(request.param) is None:
        pytest.skip(f"no {request.param} on the PATH")
    one = replace(release, program=request.param)
    one.install()
    yield one
    _remove(one)


def test_release_runs_jobs_is_changed_taken_away_and_found_again(
    installed: Release, place: Place
) -> None:
    installed.helm("test", "workron")
    place.kubectl("apply", "-f", _EXAMPLE)
    place.kubectl("wait", "--for=condition=Complete", "wj/hello", "--timeout=120s")

    place.apply(job("long", waits_for("long")))
    pod = place.pod_of("long")
    password = _password(installed)
    installed.upgrade("--set", "controller.statusRate=50")
    installed.roll_back()
    assert _password(installed) == password
    place.let_go(pod, "long")
    assert place.until("long", "Succeeded")["attempts"] == 1

    installed.take_away()
    assert place.phases() == {"hello": "Succeeded", "long": "Succeeded"}
    assert place.cluster.asked("get", "pvc/data-workron-database-0", "-n", HOME).returncode == 0
    assert _password(installed) == password

    installed.install()
    told = json.loads(installed.workron("get", "-n", place.namespace, "-o", "json"))["items"]
    assert {one["metadata"]["name"] for one in told} == {"hello", "long"}
    assert place.status("hello")["attempts"] == 1


def test_job_waits_where_no_workers_may_be_and_says_the_command(installed: Release) -> None:
    cluster = installed.cluster
    cluster.kubectl("create", "namespace", "elsewhere")
    try:
        closed = Place(cluster, "elsewhere")
        closed.kubectl("apply", "-f", _EXAMPLE)
        message = closed.until("hello", "Waiting/NamespaceNotEnabled")["message"]
        command = message[message.index("kubectl ") :].split()[1:]
        cluster.kubectl(*command)
        closed.until("hello", "Succeeded")
    finally:
        cluster.kubectl("delete", "namespace", "elsewhere")


def _password(release: Release) -> str:
    path = ("-o", "jsonpath={.data.password}")
    return release.cluster.kubectl("get", "secret", "workron-database", "-n", HOME, *path)


def _remove(release: Release) -> None:
    """Take it away with all that uninstalling leaves."""
    cluster = release.cluster
    release.take_away()
    cluster.kubectl("delete", "pvc/data-workron-database-0", "secret/workron-database", "-n", HOME)
    cluster.kubectl("delete", "crd", *(f"{kind}.workron.dev" for kind in KINDS))
    pods = ("get", "pods", "-A", "-l", "app.kubernetes.io/name=workron-worker", "-o", "name")
    until(lambda: not cluster.kubectl(*pods), "no worker is left")
    # The Secret is immutable, and a kubelet gives pods what it has of one a little longer than
    # until the last pod with it has gone: a new database would be made with the old password.
    time.sleep(_FORGETS_SECONDS)
