"""Many Jobs at once and a large Workflow are carried through, and what that takes is told.

`make e2e` has a quarter of what `make e2e-full` has. The figures are printed, and nothing is
decided by them: the machine is shared by a whole cluster.
"""

import concurrent.futures
import json
import os
import re
import time

import pytest

from bench.limit import api_server
from e2e.manifests import job, pool, task, workflow
from e2e.place import Place, until
from e2e.release import HOME, Release

pytestmark = [pytest.mark.timeout(1800), pytest.mark.alone]

_IS_FULL = os.environ.get("WORKRON_E2E_LOAD") == "full"
_JOBS = 2_000 if _IS_FULL else 500
_TASKS = 50_000 if _IS_FULL else 10_000
_AT_ONCE = 4
_BARE = 200
_SINGLE = 10
_STATUS_WRITES = re.compile(
    r'apiserver_request_total\{[^}]*resource="workronjobs"[^}]*subresource="status"[^}]*'
    r'verb="PATCH"[^}]*\} (\d+)'
)
_ENDS = """
    SELECT count(*), count(DISTINCT a.job) FROM workron.attempt a
    JOIN workron.root r ON r.id = a.job
    WHERE r.namespace = '{}' AND r.name LIKE 'j%' AND a.outcome = 'Succeeded'
"""
_MEMORY = "import re; print(re.search(r'VmRSS:\\s+(\\d+)', open('/proc/1/status').read())[1])"


def test_many_jobs_at_once(
    place: Place,
    release: Release,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    place.apply(pool("crowd", slots=50, replicas=2))
    place.kubectl("wait", "--for=jsonpath={.status.readyReplicas}=2", "wpool/crowd", "--timeout=2m")
    monkeypatch.setenv("KUBECONFIG", str(place.cluster.config))
    bare = api_server.writing(_BARE).measure()
    written = _written(place)
    began = time.monotonic()
    _create(place, [job(f"j{at}", pool="crowd") for at in range(_JOBS)])
    created = time.monotonic() - began
    until(lambda: _told(place) == _JOBS, "all say that they have succeeded", 900)
    took = time.monotonic() - began
    writes = (_written(place) - written) / _JOBS
    assert release.sql(_ENDS.format(place.namespace)) == f"{_JOBS}|{_JOBS}"
    latest = _single(place, release)
    with capsys.disabled():
        print(
            f"\n{_JOBS} Jobs: created in {created:.1f} s, all told in {took:.1f} s,"
            f" {_JOBS / took:.0f} a second; {writes:.2f} writes of a status each;"
            f" an object created and patched by nobody else: {bare:.0f} a second;"
            f" one Job picked up {latest:.0f} ms after it was stored; {_memory(place)}"
        )
    # One that is seen while it runs is told twice, and nothing is told for nothing.
    assert writes <= 2


def test_large_workflow(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    place.apply(pool("crowd", slots=50, replicas=2))
    tasks = [task(f"a{at}", count=1_000, pool="crowd") for at in range(_TASKS // 1_000)]
    began = time.monotonic()
    with place.watching("wflow", "large") as seen:
        place.apply(workflow("large", *tasks))
        place.until("large", "Succeeded", "wflow", 900)
        took = time.monotonic() - began
    assert place.status("large", "wflow")["jobs"]["succeeded"] == _TASKS
    with capsys.disabled():
        print(
            f"\na Workflow of {_TASKS:,} tasks: {took:.1f} s, {_TASKS / took:.0f} a second;"
            f" its object changed {len(seen)} times; {_memory(place)}"
        )
    assert len(seen) <= 5 + took / 5


def _create(place: Place, jobs: list[dict[str, object]]) -> None:
    parts = [jobs[first::_AT_ONCE] for first in range(_AT_ONCE)]
    lists = [json.dumps({"apiVersion": "v1", "kind": "List", "items": part}) for part in parts]
    with concurrent.futures.ThreadPoolExecutor(_AT_ONCE) as hands:
        list(hands.map(lambda text: place.kubectl("create", "-f", "-", given=text), lists))


def _told(place: Place) -> int:
    chosen = ("get", "wj", "--field-selector", "status.phase=Succeeded", "-o", "name")
    return len(place.kubectl(*chosen).split())


def _single(place: Place, release: Release) -> float:
    """Give the median time from the store to a worker of jobs that come one by one."""
    for at in range(_SINGLE):
        place.apply(job(f"single-{at}", pool="crowd"))
        place.until(f"single-{at}", "Succeeded")
    return 1e3 * float(
        release.sql(f"""
            SELECT percentile_cont(0.5) WITHIN GROUP (
                ORDER BY extract(epoch FROM a.started_at - r.submitted_at))
            FROM workron.attempt a JOIN workron.root r ON r.id = a.job
            WHERE r.namespace = '{place.namespace}' AND r.name LIKE 'single-%'
        """)
    )


def _written(place: Place) -> int:
    return sum(map(int, _STATUS_WRITES.findall(place.cluster.kubectl("get", "--raw", "/metrics"))))


def _memory(place: Place) -> str:
    pods = place.cluster.read("pods", "-n", HOME, "-l", "app.kubernetes.io/name=workron-controller")
    names = [(HOME, one["metadata"]["name"], "controller") for one in pods["items"]]
    names += [(place.namespace, one["metadata"]["name"], "agent") for one in place.pods("crowd")]
    told = [
        place.cluster.kubectl(
            *("exec", "-n", namespace, name, "-c", container, "--", "python3", "-c", _MEMORY)
        )
        for namespace, name, container in names
    ]
    sizes = [f"{int(one) / 1024:.0f}" for one in told]
    return f"MB of memory: controllers {' and '.join(sizes[:2])}, agents {' and '.join(sizes[2:])}"
