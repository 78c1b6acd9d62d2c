"""The worker's image: what is in it, and workers in containers of it over a real PostgreSQL."""

import os
import pathlib
import re
import socket
import subprocess
import tempfile
from collections.abc import Callable

import pytest

from e2e import containers
from e2e import store as storing
from e2e.containers import SOCKETS, Container, Containers
from e2e.store import Call, Store, Submit

# The first of them builds the image.
pytestmark = pytest.mark.timeout(240)

_ROOT = pathlib.Path(__file__).parents[1]
_REQUIREMENTS = _ROOT / "worker_image" / "requirements.txt"
_PAGE = _ROOT / "docs" / "how-to" / "worker-image.md"
_MOST_ADDED = 55_000_000
"""Bytes over the base. It is 44 MB; a cache of pip adds 11 MB to that, a compiler 200 MB."""

_WRITABLE = """
import os
for folder, inner, files in os.walk("/"):
    inner[:] = [one for one in inner if os.path.join(folder, one) not in {"/proc", "/sys", "/dev"}]
    for path in [folder, *(os.path.join(folder, one) for one in files)]:
        if not os.path.islink(path) and os.access(path, os.W_OK):
            print(path)
"""


_GET = "import sys, urllib.request as r; print(r.urlopen(sys.argv[1]).read().decode())"


Work = Callable[..., Container]


@pytest.fixture
def work(crew: Containers, store: Store) -> Work:
    """Start a worker with the rights of a worker."""

    def work(*words: object, options: tuple[str, ...] = (), image: str | None = None) -> Container:
        values = (f"WORKRON_STORE={store.url_inside}", f"WORKRON_TOKEN={store.token}")
        settings = tuple(word for value in values for word in ("--env", value))
        words = ("worker", "--slots", 2, *words) if words else ()
        return crew.start(*words, socket=store.socket, options=settings + options, image=image)

    return work


def test_image_adds_little_to_its_base(image: str, capsys: pytest.CaptureFixture[str]) -> None:
    whole, base = containers.size(image), containers.size(containers.base())
    with capsys.disabled():
        print(f"\nthe image: {whole / 1e6:.0f} MB, of which {(whole - base) / 1e6:.0f} MB are ours")
    assert whole - base < _MOST_ADDED


def test_image_holds_the_locked_libraries_of_a_worker_and_no_other(crew: Containers) -> None:
    program = (
        "import importlib.metadata as m\n"
        "for one in m.distributions(): print(one.name.lower().replace('_', '-'), one.version)"
    )
    said = crew.run("/opt/workron/bin/python", "-c", program).stdout.splitlines()
    locked = re.findall(r"^([\w-]+)==(\S+) \\$", _REQUIREMENTS.read_text(), re.MULTILINE)
    libraries = {line for line in said if not line.startswith("workron ")}
    assert libraries == {f"{name} {version}" for name, version in locked}
    assert len(libraries) < len(said)
    assert not any(line.startswith(("kopf", "kubernetes", "pip ", "hatchling")) for line in said)


def test_container_runs_as_nobody_in_particular_with_no_rights(crew: Containers) -> None:
    status = crew.run("cat", "/proc/self/status").stdout
    fields = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    assert set(fields["Uid"].split() + fields["Gid"].split()) == {"65532"}
    assert (int(fields["CapEff"], 16), int(fields["CapPrm"], 16)) == (0, 0)
    assert fields["NoNewPrivs"] == "1"


def test_container_can_be_written_to_in_tmp_alone(crew: Containers) -> None:
    assert crew.run("python3", "-c", _WRITABLE).stdout.split() == ["/tmp"]


def test_image_itself_adds_nothing_that_its_user_can_write_to(crew: Containers) -> None:
    program, user = ("python3", "-c", _WRITABLE), ("--user", "65532:65532")
    ours = crew.run(*program, options=user)
    theirs = crew.run(*program, options=user, image=containers.base())
    assert "/tmp" in theirs.stdout.split()
    assert set(ours.stdout.split()) - set(theirs.stdout.split()) == set()


def test_runner_starts_by_itself_on_the_python_of_the_base(crew: Containers) -> None:
    said = crew.run("python3", "-m", "workron_runner", "--help")
    assert (said.returncode, said.stdout.split()[:2]) == (0, ["usage:", "workron_runner"])


@pytest.mark.parametrize("user", [(), ("--user", "12345:0")], ids=["its own user", "any user"])
def test_worker_and_maintainer_in_containers_are_a_whole_system(
    *, crew: Containers, work: Work, store: Store, call: Call, user: tuple[str, ...]
) -> None:
    address = ("--env", f"WORKRON_STORE={store.owners_url_inside}")
    maintainer = crew.start("maintain", socket=store.socket, options=address + user)
    worker = work(options=user)
    flow = _ROOT / "examples" / "array.yaml"
    assert call("submit", flow, "--store", store.url).returncode == 0
    said = call("wait", "squares", "--store", store.url, "--timeout", "60s")
    assert said.returncode == 0, said.stdout + said.stderr
    worker.hear("attempt ended")
    assert (worker.stop(), maintainer.stop()) == (0, 0)


def test_job_sees_the_python_of_the_base_and_none_of_our_libraries(
    work: Work, submit: Submit, call: Call, store: Store
) -> None:
    submit("ours", "python3 -c 'import asyncpg' 2>&1; test $? = 1 && command -v python3")
    work("--max-jobs", 1).ended()
    said = call("read_output", "ours", "--store", store.url).stdout
    assert "No module named 'asyncpg'" in said
    assert said.splitlines()[-1] == "/usr/local/bin/python3"


def test_job_in_an_image_made_from_this_one_sees_what_was_installed_there(
    *, image: str, work: Work, submit: Submit, call: Call, store: Store
) -> None:
    [page] = re.findall(r"```dockerfile\n(.*?)```", _PAGE.read_text(), re.DOTALL)
    submit("theirs", "python3 -c 'import tabulate; print(tabulate.__name__)'")
    with containers.made_of(page.replace("workron-worker:dev", image)) as theirs:
        worker = work("--max-jobs", 1, image=theirs)
        assert worker.ended() == 0
        # An image goes only when nothing is made of it any more.
        worker.close()
    assert call("read_output", "theirs", "--store", store.url).stdout == "tabulate\n"


def test_worker_tells_how_it_is(work: Work, submit: Submit, call: Call, store: Store) -> None:
    submit("hello", "echo hello")
    worker = work("--health", "127.0.0.1:8080")
    assert storing.await_end(call, store, "hello")["phase"] == "Succeeded"
    pages = [
        worker.execute("python3", "-c", _GET, f"http://127.0.0.1:8080/{page}")
        for page in ("healthz", "readyz", "metrics")
    ]
    assert all(pages)
    assert re.search(r"^workron_worker_slots 2\.0$", pages[2], re.MULTILINE)


def test_stopped_worker_hands_back_uncharged_what_it_cannot_finish(
    work: Work, submit: Submit, call: Call, store: Store
) -> None:
    submit("long", "sleep 1000")
    worker = work("--grace", "100ms")
    worker.hear("attempt runs")
    assert worker.stop() == 0
    status = storing.status(call, store, "long")
    assert (status["phase"], status["failures"], status["losses"]) == ("Queued", 0, 0)


def test_stopped_worker_lets_run_what_ends_within_its_grace(
    work: Work, submit: Submit, call: Call, store: Store
) -> None:
    submit("short", "until test -e /tmp/go; do sleep 0.02; done")
    worker = work("--grace", "1h")
    worker.hear("attempt runs")
    with subprocess.Popen(["docker", "stop", "--time", "60", worker.id], stdout=subprocess.DEVNULL):
        worker.hear("worker drains")
        worker.execute("touch", "/tmp/go")
    assert worker.ended() == 0
    status = storing.status(call, store, "short")
    assert (status["phase"], status["attempts"]) == ("Succeeded", 1)


@pytest.mark.parametrize(
    "blow",
    ["kill -9 $PPID", "kill -9 -1", "kill -STOP 1; kill -9 1; kill -9 $PPID"],
    ids=["runner", "all", "worker"],
)
def test_worker_outlives_a_job_that_strikes_at_it_and_keeps_no_dead(
    *, work: Work, submit: Submit, call: Call, store: Store, blow: str
) -> None:
    submit("rude", f"test $WORKRON_ATTEMPT = 2 || {{ setsid sleep 1000 & {blow}; sleep 1000; }}")
    worker = work()
    status = storing.await_end(call, store, "rude")
    assert (status["phase"], status["losses"]) == ("Succeeded", 1)
    assert worker.zombies() == 0
    assert worker.stop() == 0


def test_worker_that_waits_for_its_store_ends_on_the_first_signal(crew: Containers) -> None:
    with tempfile.TemporaryDirectory(dir="/tmp") as home, socket.socket(socket.AF_UNIX) as deaf:
        path = pathlib.Path(home, ".s.PGSQL.5432")
        deaf.bind(str(path))
        path.chmod(0o777)
        deaf.listen()
        url = f"postgresql://nobody@/none?host={SOCKETS}"
        worker = crew.start("worker", "--store", url, socket=path)
        called, _ = deaf.accept()
        with called:
            assert worker.stop() == 0


@pytest.mark.parametrize(("word", "outcome"), [("required", "failed"), ("", "skipped")])
def test_daemon_that_does_not_answer_is_said_and_never_passed_over(
    monkeypatch: pytest.MonkeyPatch, word: str, outcome: str
) -> None:
    monkeypatch.setenv("PATH", os.devnull)
    monkeypatch.setenv("WORKRON_E2E_IMAGE", word)
    expected = {"failed": pytest.fail.Exception, "skipped": pytest.skip.Exception}[outcome]
    with pytest.raises(expected, match="no docker on the PATH"):
        containers.need_docker()
