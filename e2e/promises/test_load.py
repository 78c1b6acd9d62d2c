"""Many Jobs at once and a large Workflow run to their end, and the tests print how long it takes.

`make e2e` has a quarter of the load of `make e2e-full`. No assertion depends on a rate: the whole
cluster shares one machine.
"""

import concurrent.futures
import json
import os
import re
import time

import pytest

from bench.limit import api_server
from e2e.manifests import job, pool, task, workflow
from e2e.namespace import Namespace, wait_until
from e2e.release import RELEASE_NAMESPACE, Release

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
    JOIN workron.run r ON r.id = a.job
    WHERE r.namespace = '{}' AND r.name LIKE 'j%' AND a.outcome = 'Succeeded'
"""
_MEMORY = "import re; print(re.search(r'VmRSS:\\s+(\\d+)', open('/proc/1/status').read())[1])"


def test_each_job_runs_once_when_many_are_created_at_once(
    namespace: Namespace,
    release: Release,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    namespace.apply(pool("many", slots=50, replicas=2))
    namespace.kubectl(
        "wait", "--for=jsonpath={.status.readyReplicas}=2", "wpool/many", "--timeout=2m"
    )
    monkeypatch.setenv("KUBECONFIG", str(namespace.cluster.config))
    bare = api_server.writing(_BARE).measure()
    written = _status_writes(namespace)
    began = time.monotonic()
    _create(namespace, [job(f"j{at}", pool="many") for at in range(_JOBS)])
    created = time.monotonic() - began
    wait_until(
        lambda: _count_succeeded(namespace) == _JOBS, "the status of every Job is Succeeded", 900
    )
    took = time.monotonic() - began
    writes = (_status_writes(namespace) - written) / _JOBS
    assert release.sql(_ENDS.format(namespace.name)) == f"{_JOBS}|{_JOBS}"
    latest = _median_pickup_ms(namespace, release)
    with capsys.disabled():
        print(
            f"\n{_JOBS} Jobs: created in {created:.1f} s, all statuses in {took:.1f} s,"
            f" {_JOBS / took:.0f} a second; {writes:.2f} status writes each;"
            f" the API server alone creates and patches {bare:.0f} objects a second;"
            f" one Job picked up {latest:.0f} ms after it was stored; {_memory(namespace)}"
        )
    # A Job that is seen running is written twice, and no status is written without a change.
    assert writes <= 2


def test_large_workflow_succeeds_with_few_status_writes(
    namespace: Namespace, capsys: pytest.CaptureFixture[str]
) -> None:
    namespace.apply(pool("many", slots=50, replicas=2))
    tasks = [task(f"a{at}", count=1_000, pool="many") for at in range(_TASKS // 1_000)]
    began = time.monotonic()
    with namespace.watch_phases("wflow", "large") as seen:
        namespace.apply(workflow("large", *tasks))
        namespace.wait_for_phase("large", "Succeeded", "wflow", 900)
        took = time.monotonic() - began
    assert namespace.status("large", "wflow")["jobs"]["succeeded"] == _TASKS
    with capsys.disabled():
        print(
            f"\na Workflow of {_TASKS:,} tasks: {took:.1f} s, {_TASKS / took:.0f} a second;"
            f" its object changed {len(seen)} times; {_memory(namespace)}"
        )
    assert len(seen) <= 5 + took / 5


def _create(namespace: Namespace, jobs: list[dict[str, object]]) -> None:
    parts = [jobs[first::_AT_ONCE] for first in range(_AT_ONCE)]
    lists = [json.dumps({"apiVersion": "v1", "kind": "List", "items": part}) for part in parts]
    with concurrent.futures.ThreadPoolExecutor(_AT_ONCE) as executor:
        list(executor.map(lambda text: namespace.kubectl("create", "-f", "-", stdin=text), lists))


def _count_succeeded(namespace: Namespace) -> int:
    chosen = ("get", "wj", "--field-selector", "status.phase=Succeeded", "-o", "name")
    return len(namespace.kubectl(*chosen).split())


def _median_pickup_ms(namespace: Namespace, release: Release) -> float:
    """Return the median milliseconds from submission to start, of jobs applied one by one."""
    for at in range(_SINGLE):
        namespace.apply(job(f"single-{at}", pool="many"))
        namespace.wait_for_phase(f"single-{at}", "Succeeded")
    return 1e3 * float(
        release.sql(f"""
            SELECT percentile_cont(0.5) WITHIN GROUP (
                ORDER BY extract(epoch FROM a.started_at - r.submitted_at))
            FROM workron.attempt a JOIN workron.run r ON r.id = a.job
            WHERE r.namespace = '{namespace.name}' AND r.name LIKE 'single-%'
        """)
    )


def _status_writes(namespace: Namespace) -> int:
    return sum(
        map(int, _STATUS_WRITES.findall(namespace.cluster.kubectl("get", "--raw", "/metrics")))
    )


def _memory(namespace: Namespace) -> str:
    pods = namespace.cluster.get_json(
        "pods", "-n", RELEASE_NAMESPACE, "-l", "app.kubernetes.io/name=workron-controller"
    )
    names = [(RELEASE_NAMESPACE, one["metadata"]["name"], "controller") for one in pods["items"]]
    names += [(namespace.name, one["metadata"]["name"], "agent") for one in namespace.pods("many")]
    sizes_kb = [
        namespace.cluster.kubectl(
            *("exec", "-n", home, pod, "-c", container, "--", "python3", "-c", _MEMORY)
        )
        for home, pod, container in names
    ]
    sizes = [f"{int(one) / 1024:.0f}" for one in sizes_kb]
    return f"MB of memory: controllers {' and '.join(sizes[:2])}, agents {' and '.join(sizes[2:])}"
