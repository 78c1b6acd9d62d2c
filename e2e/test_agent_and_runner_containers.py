"""Agent and runner in two containers that share a socket, with the privileges of a pod."""

from collections.abc import Callable

import pytest

from e2e import store as store_access
from e2e.containers import Container, Containers
from e2e.simulated_pod import RUNNER_SOCKET, SimulatedPod
from e2e.store import Call, Store, Submit

# The first test builds the image.
pytestmark = pytest.mark.timeout(240)

_ONCE = "test $WORKRON_ATTEMPT = 2 || exec sleep 1000"
_READY = """
import urllib.request, urllib.error
try:
    print(urllib.request.urlopen("http://127.0.0.1:8080/readyz").read().decode())
except urllib.error.HTTPError as error:
    print(error.code, error.read().decode())
"""


@pytest.fixture
def pod(image_containers: Containers, store: Store) -> SimulatedPod:
    """A simulated pod, and a maintainer beside it."""
    image_containers.start(
        "maintain", socket=store.socket,
        options=("--env", f"WORKRON_STORE={store.owner_url_inside}"),
    )  # fmt: skip
    return SimulatedPod(image_containers, store)


End = Callable[[str], dict[str, object]]


@pytest.fixture
def end(call: Call, store: Store) -> End:
    """Wait for the end of a job, and return its status."""
    return lambda name: store_access.wait_for_end(call, store, name)


def _ready(agent: Container) -> str:
    return agent.execute("python3", "-c", _READY).strip()


def test_commands_run_on_the_image_of_the_runner_and_cannot_read_the_agent(
    pod: SimulatedPod, submit: Submit, end: End, call: Call, store: Store
) -> None:
    runner, agent = pod.runner(), pod.agent()
    submit("inspect", "id -u; id -G; ls /opt; ps 2>&1; env; cat /proc/1/environ 2>&1; true")
    assert end("inspect")["phase"] == "Succeeded"
    result = call("output", "inspect", "--store", store.url).stdout
    assert result.splitlines()[:2] == ["65532", "65532 2000"]
    assert store.token not in result
    assert "cat: /proc/1/environ: Permission denied" in result
    assert (agent.stop(), runner.wait()) == (0, 0)
    assert pod.remaining_files() == []


def test_agent_is_not_ready_when_the_runner_has_not_started(
    pod: SimulatedPod, submit: Submit, end: End
) -> None:
    submit("first", "true")
    agent = pod.agent()
    waits = agent.wait_for_event("waiting for runner")
    assert waits["reason"] == f"no runner listens at {RUNNER_SOCKET}: No such file or directory"
    assert _ready(agent) == f"503 {waits['reason']}"
    pod.runner()
    assert end("first")["phase"] == "Succeeded"
    assert _ready(agent) == "ok"


def test_jobs_run_again_when_their_runner_is_killed(
    pod: SimulatedPod, submit: Submit, end: End
) -> None:
    runner, agent = pod.runner(), pod.agent()
    for name in ("one", "other"):
        submit(name, _ONCE)
        agent.wait_for_event("attempt running")
    runner.kill()
    agent.wait_for_event("command lost")
    agent.wait_for_event("waiting for runner")
    assert _ready(agent).startswith("503 no runner listens at")
    assert len(pod.remaining_files()) == 1
    next_one = pod.runner()
    for name in ("one", "other"):
        status = end(name)
        assert (status["phase"], status["attempts"], status["losses"]) == ("Succeeded", 2, 0)
    assert (agent.stop(), next_one.wait()) == (0, 0)
    assert pod.remaining_files() == []


async def test_jobs_run_again_before_the_lease_ends_when_the_agent_is_killed_and_restarts(
    pod: SimulatedPod, submit: Submit, end: End, store: Store
) -> None:
    await store_access.execute(store.url, "UPDATE workron.pool SET lease_seconds = 3600")
    runner, agent = pod.runner(), pod.agent()
    submit("job", _ONCE)
    agent.wait_for_event("attempt running")
    agent.kill()
    assert runner.wait() == 0
    assert pod.remaining_files() == []
    restarted = pod.agent()
    restarted.wait_for_event("waiting for runner")
    pod.runner()
    assert restarted.wait_for_event("worker registered")["worker"] == pod.uid
    status = end("job")
    assert (status["phase"], status["attempts"], status["losses"]) == ("Succeeded", 2, 1)


def test_runner_survives_and_has_no_zombies_when_a_job_tries_to_kill_it(
    pod: SimulatedPod, submit: Submit, end: End
) -> None:
    runner, _ = pod.runner(), pod.agent()
    submit("hostile", "setsid sleep 1000 & kill -9 -1; kill -STOP 1; kill -9 1")
    assert end("hostile")["attempts"] == 1
    assert runner.count_zombies() == 0
