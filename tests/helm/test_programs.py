"""The programs that the chart runs in the cluster, tested against a fake API server."""

import base64
import http.server
import importlib
import json
import pathlib
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.helm import chart

_FILES = chart.CHART / "files"
_SECRET = "/api/v1/namespaces/here/secrets/workron-database"  # noqa: S105 - a path
_JOBS = "/apis/workron.dev/v1alpha1/namespaces/there/workronjobs"


class FakeApiServer(http.server.ThreadingHTTPServer):
    """Gives prepared answers, and records the requests."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.answers: dict[tuple[str, str], list[tuple[int, Any]]] = {}
        self.asked: list[tuple[str, str, Any]] = []
        self.headers: list[Any] = []

    def prepare(self, method: str, path: str, *answers: Any, code: int = 200) -> None:
        """Answer with these bodies in turn; the last one repeats."""
        self.answers[method, path] = [(code, one) for one in answers]

    def bodies(self, method: str) -> list[Any]:
        """Return the bodies that were sent with a method."""
        return [body for how, _, body in self.asked if how == method]


class Handler(http.server.BaseHTTPRequestHandler):
    """Handles one request."""

    server: FakeApiServer

    def _answer(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(length)) if length else None
        self.server.asked.append((self.command, self.path, body))
        self.server.headers.append(self.headers)
        answers = self.server.answers[self.command, self.path]
        code, done = answers.pop(0) if len(answers) > 1 else answers[0]
        self.send_response(code)
        self.end_headers()
        self.wfile.write(json.dumps(done).encode())

    do_GET = do_POST = do_PATCH = do_DELETE = _answer  # noqa: N815 - as the library calls them

    def log_message(self, *_: object) -> None:
        """Log nothing."""


@pytest.fixture
def api() -> Iterator[FakeApiServer]:
    """A running fake API server."""
    with FakeApiServer() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def program(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Any]:
    """Imports a program of the chart by its name."""
    monkeypatch.syspath_prepend(_FILES)
    return importlib.import_module


@pytest.fixture
def cluster(api: FakeApiServer, program: Callable[[str], Any]) -> Any:
    """The client of the programs, connected to the fake API server."""
    return program("kube").Cluster(f"http://127.0.0.1:{api.server_port}", "a-token", None)


def _decoded(data: dict[str, str]) -> dict[str, str]:
    return {name: base64.b64decode(value).decode() for name, value in data.items()}


def test_password_and_url_are_stored_when_the_secret_is_empty(
    api: FakeApiServer, cluster: Any, program: Callable[[str], Any]
) -> None:
    api.prepare("GET", _SECRET, {"metadata": {"resourceVersion": "7"}})
    api.prepare("PATCH", _SECRET, {})
    assert program("password").ensure_password(
        cluster, "here", "workron-database", lambda: "secret"
    )
    [patch] = api.bodies("PATCH")
    assert _decoded(patch["data"]) == {
        "password": "secret",
        "url": "postgresql://workron:secret@workron-database.here.svc:5432/workron",
    }
    assert patch["metadata"] == {"resourceVersion": "7"}
    assert patch["immutable"] is True


def test_existing_password_is_kept(
    api: FakeApiServer, cluster: Any, program: Callable[[str], Any]
) -> None:
    api.prepare("GET", _SECRET, {"metadata": {"resourceVersion": "8"}, "data": {"url": "eA=="}})
    assert not program("password").ensure_password(cluster, "here", "workron-database")
    assert api.bodies("PATCH") == []


def test_password_of_another_controller_is_kept_on_a_conflict(
    api: FakeApiServer, cluster: Any, program: Callable[[str], Any]
) -> None:
    made = {"metadata": {"resourceVersion": "8"}, "data": {"url": "eA=="}}
    api.prepare("GET", _SECRET, {"metadata": {"resourceVersion": "7"}}, made)
    api.prepare("PATCH", _SECRET, {"message": "the object has been modified"}, code=409)
    assert not program("password").ensure_password(cluster, "here", "workron-database")


def test_passwords_are_random_and_need_no_quoting(
    api: FakeApiServer, cluster: Any, program: Callable[[str], Any]
) -> None:
    api.prepare("GET", _SECRET, {"metadata": {"resourceVersion": "7"}})
    api.prepare("PATCH", _SECRET, {})
    for _ in range(2):
        program("password").ensure_password(cluster, "here", "workron-database")
    one, other = (_decoded(body["data"])["password"] for body in api.bodies("PATCH"))
    assert one != other
    assert one.isalnum()
    assert len(one) >= 32


def test_error_has_the_message_of_the_api_server(
    api: FakeApiServer, cluster: Any, program: Callable[[str], Any]
) -> None:
    api.prepare("GET", _SECRET, {"message": "secrets is forbidden"}, code=403)
    with pytest.raises(program("kube").RequestError, match="403: secrets is forbidden"):
        program("password").ensure_password(cluster, "here", "workron-database")


def test_request_is_a_merge_patch_with_the_token(api: FakeApiServer, cluster: Any) -> None:
    api.prepare("PATCH", _SECRET, {})
    cluster.merge(_SECRET, {})
    [headers] = api.headers
    assert headers["Authorization"] == "Bearer a-token"
    assert headers["Content-Type"] == "application/merge-patch+json"


def _job(status: dict[str, Any] | None) -> dict[str, Any]:
    return {
        "metadata": {"name": "workron-test-x"},
        **({} if status is None else {"status": status}),
    }


def _first_job(program: Callable[[str], Any], cluster: Any) -> tuple[bool, list[str]]:
    done: list[str] = []
    now = [0.0]

    def pass_by(seconds: float) -> None:
        now[0] += seconds

    ended = program("first_job").run(cluster, "there", done.append, lambda: now[0], pass_by)
    return ended, done


def test_first_job_is_created_awaited_and_deleted(
    api: FakeApiServer, cluster: Any, program: Callable[[str], Any]
) -> None:
    api.prepare("POST", _JOBS, _job(None))
    api.prepare(
        "GET",
        f"{_JOBS}/workron-test-x",
        _job(None),
        _job({"phase": "Waiting", "reason": "NamespaceNotEnabled", "message": "say so"}),
        _job({"phase": "Succeeded", "finishedAt": "now", "outputTail": "it works\n"}),
    )
    api.prepare("DELETE", f"{_JOBS}/workron-test-x", {})
    assert _first_job(program, cluster) == (
        True,
        [
            "Job there/workron-test-x",
            "Waiting: NamespaceNotEnabled: say so",
            "Succeeded: it works",
        ],
    )
    assert [method for method, _, _ in api.asked] == ["POST", "GET", "GET", "GET", "DELETE"]


@pytest.mark.parametrize("status", [{"phase": "Failed", "finishedAt": "now"}, {"phase": "Queued"}])
def test_first_job_fails_when_the_job_fails_or_does_not_finish(
    api: FakeApiServer, cluster: Any, program: Callable[[str], Any], status: dict[str, Any]
) -> None:
    api.prepare("POST", _JOBS, _job(None))
    api.prepare("GET", f"{_JOBS}/workron-test-x", _job(status))
    api.prepare("DELETE", f"{_JOBS}/workron-test-x", {})
    ended, done = _first_job(program, cluster)
    assert not ended
    assert ("the Job did not finish within 280 s" in done) is ("finishedAt" not in status)


@pytest.mark.parametrize("name", ["password.py", "first_job.py"])
def test_program_prints_one_line_when_it_does_not_run_in_a_pod(
    name: str, tmp_path: pathlib.Path
) -> None:
    done = subprocess.run(
        [sys.executable, _FILES / name, "here", "x"],
        capture_output=True, text=True, check=False, cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1


def test_programs_are_mounted_unchanged() -> None:
    data = chart.find(chart.render(), "ConfigMap", "workron-programs")["data"]
    assert {name: text.strip() for name, text in data.items()} == {
        path.name: path.read_text().strip() for path in _FILES.glob("*.py")
    }
