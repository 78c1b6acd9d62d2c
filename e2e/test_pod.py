"""Agent and runner in two containers that share a socket, with the rights that a pod has."""

from collections.abc import Callable

import pytest

from e2e import store as storing
from e2e.containers import Container, Containers
from e2e.pod import Pod
from e2e.store import Call, Store, Submit

# The first of them builds the image.
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
def pod(crew: Containers, store: Store) -> Pod:
    """A pod of a pool."""
    crew.start(
        "maintain", socket=store.socket,
        options=("--env", f"WORKRON_STORE={store.owners_url_inside}"),
    )  # fmt: skip
    return Pod(crew, store)


End = Callable[[str], dict[str, object]]


@pytest.fixture
def end(call: Call, store: Store) -> End:
    """Wait for the end of a job."""
    return lambda name: storing.await_end(call, store, name)


def _ready(agent: Container) -> str:
    return agent.execute("python3", "-c", _READY).strip()


def test_jobs_run_in_the_image_of_the_runner_out_of_sight_of_the_agent(
    pod: Pod, submit: Submit, end: End, call: Call, store: Store
) -> None:
    runner, agent = pod.runner(), pod.agent()
    submit("look", "id -u; id -G; ls /opt; ps 2>&1; env; cat /proc/1/environ 2>&1; true")
    assert end("look")["phase"] == "Succeeded"
    said = call("read_output", "look", "--store", store.url).stdout
    assert said.splitlines()[:2] == ["65532", "65532 2000"]
    assert store.token not in said
    assert "cat: /proc/1/environ: Permission denied" in said
    assert (agent.stop(), runner.ended()) == (0, 0)
    assert pod.room() == []


def test_agent_that_is_there_first_waits_and_is_not_ready(
    pod: Pod, submit: Submit, end: End
) -> None:
    submit("first", "true")
    agent = pod.agent()
    waits = agent.hear("runner is waited for")
    assert waits["why"] == "no runner waits at /door/runner: No such file or directory"
    assert _ready(agent) == f"503 {waits['why']}"
    pod.runner()
    assert end("first")["phase"] == "Succeeded"
    assert _ready(agent) == "ok"


def test_runner_that_is_killed_loses_its_jobs_together_and_the_next_one_runs_them(
    pod: Pod, submit: Submit, end: End
) -> None:
    runner, agent = pod.runner(), pod.agent()
    for name in ("one", "other"):
        submit(name, _ONCE)
        agent.hear("attempt runs")
    runner.kill()
    agent.hear("command was lost")
    agent.hear("runner is waited for")
    assert _ready(agent).startswith("503 no runner waits at")
    assert len(pod.room()) == 1
    next_one = pod.runner()
    for name in ("one", "other"):
        status = end(name)
        assert (status["phase"], status["attempts"], status["losses"]) == ("Succeeded", 2, 0)
    assert (agent.stop(), next_one.ended()) == (0, 0)
    assert pod.room() == []


async def test_agent_that_is_killed_takes_its_jobs_along_and_its_next_boot_needs_no_lease_to_pass(
    pod: Pod, submit: Submit, end: End, store: Store
) -> None:
    await storing.execute(store.url, "UPDATE workron.pool SET lease_seconds = 3600")
    runner, agent = pod.runner(), pod.agent()
    submit("job", _ONCE)
    agent.hear("attempt runs")
    agent.kill()
    assert runner.ended() == 0
    assert pod.room() == []
    again = pod.agent()
    again.hear("runner is waited for")
    pod.runner()
    assert again.hear("worker registered")["worker"] == pod.uid
    status = end("job")
    assert (status["phase"], status["attempts"], status["losses"]) == ("Succeeded", 2, 1)


def test_runner_outlives_a_job_that_strikes_at_it_and_keeps_no_dead(
    pod: Pod, submit: Submit, end: End
) -> None:
    runner, _ = pod.runner(), pod.agent()
    submit("rude", "setsid sleep 1000 & kill -9 -1; kill -STOP 1; kill -9 1")
    assert end("rude")["attempts"] == 1
    assert runner.zombies() == 0
