"""The worker image: its contents, and workers in containers of it on a real PostgreSQL."""

import pathlib
import re
import socket
import subprocess
import tempfile
from collections.abc import Callable

import pytest

from e2e import containers
from e2e import store as store_access
from e2e.containers import SOCKET_FOLDER, Container, Containers
from e2e.store import Call, Store, Submit

# The first test builds the image.
pytestmark = pytest.mark.timeout(240)

_ROOT = pathlib.Path(__file__).parents[1]
_REQUIREMENTS = _ROOT / "worker_image" / "requirements.txt"
_PAGE = _ROOT / "docs" / "how-to" / "worker-image.md"
_MAX_ADDED_BYTES = 55_000_000
"""Bytes added to the base, today 44 MB. A pip cache would add 11 MB, a compiler 200 MB."""

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
def work(image_containers: Containers, store: Store) -> Work:
    """Start a worker with the database role of a worker."""

    def work(*words: object, options: tuple[str, ...] = (), image: str | None = None) -> Container:
        values = (f"WORKRON_STORE={store.url_inside}", f"WORKRON_TOKEN={store.token}")
        settings = tuple(word for value in values for word in ("--env", value))
        words = ("worker", "--slots", 2, *words) if words else ()
        return image_containers.start(
            *words, socket=store.socket, options=settings + options, image=image
        )

    return work


def test_image_adds_at_most_55_mb_to_its_base(
    image: str, capsys: pytest.CaptureFixture[str]
) -> None:
    whole, base = containers.image_size(image), containers.image_size(containers.base_image())
    with capsys.disabled():
        print(f"\nworker image: {whole / 1e6:.0f} MB, {(whole - base) / 1e6:.0f} MB over its base")
    assert whole - base < _MAX_ADDED_BYTES


def test_image_has_exactly_the_locked_libraries_of_a_worker(
    image_containers: Containers,
) -> None:
    program = (
        "import importlib.metadata as m\n"
        "for one in m.distributions(): print(one.name.lower().replace('_', '-'), one.version)"
    )
    result = image_containers.run("/opt/workron/bin/python", "-c", program).stdout.splitlines()
    locked = re.findall(r"^([\w-]+)==(\S+) \\$", _REQUIREMENTS.read_text(), re.MULTILINE)
    libraries = {line for line in result if not line.startswith("workron ")}
    assert libraries == {f"{name} {version}" for name, version in locked}
    assert len(libraries) < len(result)
    assert not any(line.startswith(("kopf", "kubernetes", "pip ", "hatchling")) for line in result)


def test_container_runs_as_an_unprivileged_user_without_capabilities(
    image_containers: Containers,
) -> None:
    status = image_containers.run("cat", "/proc/self/status").stdout
    fields = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    assert set(fields["Uid"].split() + fields["Gid"].split()) == {"65532"}
    assert (int(fields["CapEff"], 16), int(fields["CapPrm"], 16)) == (0, 0)
    assert fields["NoNewPrivs"] == "1"


def test_only_tmp_is_writable_in_the_container(image_containers: Containers) -> None:
    assert image_containers.run("python3", "-c", _WRITABLE).stdout.split() == ["/tmp"]


def test_image_adds_no_file_that_its_user_can_write_to(image_containers: Containers) -> None:
    program, user = ("python3", "-c", _WRITABLE), ("--user", "65532:65532")
    added = image_containers.run(*program, options=user)
    base = image_containers.run(*program, options=user, image=containers.base_image())
    assert "/tmp" in base.stdout.split()
    assert set(added.stdout.split()) - set(base.stdout.split()) == set()


def test_runner_starts_on_the_python_of_the_base(image_containers: Containers) -> None:
    result = image_containers.run("python3", "-m", "workron_runner", "--help")
    assert (result.returncode, result.stdout.split()[:2]) == (0, ["usage:", "workron_runner"])


@pytest.mark.parametrize("user", [(), ("--user", "12345:0")], ids=["user of the image", "any user"])
def test_worker_and_maintainer_in_containers_run_a_workflow(
    *, image_containers: Containers, work: Work, store: Store, call: Call, user: tuple[str, ...]
) -> None:
    address = ("--env", f"WORKRON_STORE={store.owner_url_inside}")
    maintainer = image_containers.start("maintain", socket=store.socket, options=address + user)
    worker = work(options=user)
    flow = _ROOT / "examples" / "array.yaml"
    assert call("submit", flow, "--store", store.url).returncode == 0
    result = call("wait", "squares", "--store", store.url, "--timeout", "60s")
    assert result.returncode == 0, result.stdout + result.stderr
    worker.wait_for_event("attempt ended")
    assert (worker.stop(), maintainer.stop()) == (0, 0)


def test_job_uses_the_python_of_the_base_without_the_libraries_of_the_worker(
    work: Work, submit: Submit, call: Call, store: Store
) -> None:
    submit("imports", "python3 -c 'import asyncpg' 2>&1; test $? = 1 && command -v python3")
    work("--max-jobs", 1).wait()
    result = call("output", "imports", "--store", store.url).stdout
    assert "No module named 'asyncpg'" in result
    assert result.splitlines()[-1] == "/usr/local/bin/python3"


def test_job_uses_libraries_that_a_derived_image_installed(
    *, image: str, work: Work, submit: Submit, call: Call, store: Store
) -> None:
    [page] = re.findall(r"```dockerfile\n(.*?)```", _PAGE.read_text(), re.DOTALL)
    submit("derived", "python3 -c 'import tabulate; print(tabulate.__name__)'")
    with containers.image_from_dockerfile(page.replace("workron-worker:dev", image)) as derived:
        worker = work("--max-jobs", 1, image=derived)
        assert worker.wait() == 0
        # An image can be removed only when no container of it exists.
        worker.close()
    assert call("output", "derived", "--store", store.url).stdout == "tabulate\n"


def test_worker_answers_health_and_metrics(
    work: Work, submit: Submit, call: Call, store: Store
) -> None:
    submit("hello", "echo hello")
    worker = work("--health", "127.0.0.1:8080")
    assert store_access.wait_for_end(call, store, "hello")["phase"] == "Succeeded"
    pages = [
        worker.execute("python3", "-c", _GET, f"http://127.0.0.1:8080/{page}")
        for page in ("healthz", "readyz", "metrics")
    ]
    assert all(pages)
    assert re.search(r"^workron_worker_slots 2\.0$", pages[2], re.MULTILINE)


def test_job_is_requeued_without_a_loss_when_its_worker_is_stopped(
    work: Work, submit: Submit, call: Call, store: Store
) -> None:
    submit("long", "sleep 1000")
    worker = work("--grace", "100ms")
    worker.wait_for_event("attempt running")
    assert worker.stop() == 0
    status = store_access.job_status(call, store, "long")
    assert (status["phase"], status["failures"], status["losses"]) == ("Queued", 0, 0)


def test_job_finishes_when_it_ends_within_the_grace_of_a_stopped_worker(
    work: Work, submit: Submit, call: Call, store: Store
) -> None:
    submit("short", "until test -e /tmp/go; do sleep 0.02; done")
    worker = work("--grace", "1h")
    worker.wait_for_event("attempt running")
    with subprocess.Popen(["docker", "stop", "--time", "60", worker.id], stdout=subprocess.DEVNULL):
        worker.wait_for_event("worker draining")
        worker.execute("touch", "/tmp/go")
    assert worker.wait() == 0
    status = store_access.job_status(call, store, "short")
    assert (status["phase"], status["attempts"]) == ("Succeeded", 1)


@pytest.mark.parametrize(
    "attack",
    ["kill -9 $PPID", "kill -9 -1", "kill -STOP 1; kill -9 1; kill -9 $PPID"],
    ids=["runner", "all", "worker"],
)
def test_worker_survives_and_has_no_zombies_when_a_job_tries_to_kill_it(
    *, work: Work, submit: Submit, call: Call, store: Store, attack: str
) -> None:
    submit(
        "hostile", f"test $WORKRON_ATTEMPT = 2 || {{ setsid sleep 1000 & {attack}; sleep 1000; }}"
    )
    worker = work()
    status = store_access.wait_for_end(call, store, "hostile")
    assert (status["phase"], status["losses"]) == ("Succeeded", 1)
    assert worker.count_zombies() == 0
    assert worker.stop() == 0


def test_worker_ends_on_the_first_signal_when_its_store_does_not_answer(
    image_containers: Containers,
) -> None:
    with tempfile.TemporaryDirectory(dir="/tmp") as folder, socket.socket(socket.AF_UNIX) as server:
        path = pathlib.Path(folder, ".s.PGSQL.5432")
        server.bind(str(path))
        path.chmod(0o777)
        server.listen()
        url = f"postgresql://worker@/none?host={SOCKET_FOLDER}"
        worker = image_containers.start("worker", "--store", url, socket=path)
        connection, _ = server.accept()
        with connection:
            assert worker.stop() == 0
