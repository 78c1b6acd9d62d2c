"""The programs that the chart runs in the cluster, against an API server of their own."""

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


class Api(http.server.ThreadingHTTPServer):
    """Answers as is prepared, and keeps what it was asked."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.answers: dict[tuple[str, str], list[tuple[int, Any]]] = {}
        self.asked: list[tuple[str, str, Any]] = []
        self.headers: list[Any] = []

    def prepare(self, method: str, path: str, *answers: Any, code: int = 200) -> None:
        """Give these answers in turn, the last one for ever."""
        self.answers[method, path] = [(code, one) for one in answers]

    def bodies(self, method: str) -> list[Any]:
        """Give what was sent so."""
        return [body for how, _, body in self.asked if how == method]


class Handler(http.server.BaseHTTPRequestHandler):
    """One request."""

    server: Api

    def _answer(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(length)) if length else None
        self.server.asked.append((self.command, self.path, body))
        self.server.headers.append(self.headers)
        answers = self.server.answers[self.command, self.path]
        code, said = answers.pop(0) if len(answers) > 1 else answers[0]
        self.send_response(code)
        self.end_headers()
        self.wfile.write(json.dumps(said).encode())

    do_GET = do_POST = do_PATCH = do_DELETE = _answer  # noqa: N815 - as the library calls them

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def api() -> Iterator[Api]:
    """An API server."""
    with Api() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def program(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Any]:
    """Give a program of the chart, as it is found beside the others."""
    monkeypatch.syspath_prepend(_FILES)
    return importlib.import_module


@pytest.fixture
def cluster(api: Api, program: Callable[[str], Any]) -> Any:
    """The cluster, as those programs speak with it."""
    return program("kube").Cluster(f"http://127.0.0.1:{api.server_port}", "a-token", None)


def _decoded(data: dict[str, str]) -> dict[str, str]:
    return {name: base64.b64decode(value).decode() for name, value in data.items()}


def test_empty_secret_is_given_a_password_and_the_url_with_it(
    api: Api, cluster: Any, program: Callable[[str], Any]
) -> None:
    api.prepare("GET", _SECRET, {"metadata": {"resourceVersion": "7"}})
    api.prepare("PATCH", _SECRET, {})
    assert program("password").settle(cluster, "here", "workron-database", lambda: "secret")
    [patch] = api.bodies("PATCH")
    assert _decoded(patch["data"]) == {
        "password": "secret",
        "url": "postgresql://workron:secret@workron-database.here.svc:5432/workron",
    }
    assert patch["metadata"] == {"resourceVersion": "7"}
    assert patch["immutable"] is True


def test_password_that_is_there_stays(
    api: Api, cluster: Any, program: Callable[[str], Any]
) -> None:
    api.prepare("GET", _SECRET, {"metadata": {"resourceVersion": "8"}, "data": {"url": "eA=="}})
    assert not program("password").settle(cluster, "here", "workron-database")
    assert api.bodies("PATCH") == []


def test_controller_that_was_slower_takes_the_password_of_the_other(
    api: Api, cluster: Any, program: Callable[[str], Any]
) -> None:
    made = {"metadata": {"resourceVersion": "8"}, "data": {"url": "eA=="}}
    api.prepare("GET", _SECRET, {"metadata": {"resourceVersion": "7"}}, made)
    api.prepare("PATCH", _SECRET, {"message": "the object has been modified"}, code=409)
    assert not program("password").settle(cluster, "here", "workron-database")


def test_no_two_passwords_are_the_same_and_none_needs_quoting(
    api: Api, cluster: Any, program: Callable[[str], Any]
) -> None:
    api.prepare("GET", _SECRET, {"metadata": {"resourceVersion": "7"}})
    api.prepare("PATCH", _SECRET, {})
    for _ in range(2):
        program("password").settle(cluster, "here", "workron-database")
    one, other = (_decoded(body["data"])["password"] for body in api.bodies("PATCH"))
    assert one != other
    assert one.isalnum()
    assert len(one) >= 32


def test_refusal_is_said_in_the_words_of_the_api_server(
    api: Api, cluster: Any, program: Callable[[str], Any]
) -> None:
    api.prepare("GET", _SECRET, {"message": "secrets is forbidden"}, code=403)
    with pytest.raises(program("kube").RefusedError, match="403: secrets is forbidden"):
        program("password").settle(cluster, "here", "workron-database")


def test_request_is_a_merge_patch_with_the_token_of_the_account(api: Api, cluster: Any) -> None:
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
    said: list[str] = []
    now = [0.0]

    def pass_by(seconds: float) -> None:
        now[0] += seconds

    ended = program("first_job").run(cluster, "there", said.append, lambda: now[0], pass_by)
    return ended, said


def test_first_job_is_made_waited_for_and_taken_away(
    api: Api, cluster: Any, program: Callable[[str], Any]
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
def test_first_job_that_fails_or_never_ends_fails_the_test(
    api: Api, cluster: Any, program: Callable[[str], Any], status: dict[str, Any]
) -> None:
    api.prepare("POST", _JOBS, _job(None))
    api.prepare("GET", f"{_JOBS}/workron-test-x", _job(status))
    api.prepare("DELETE", f"{_JOBS}/workron-test-x", {})
    ended, said = _first_job(program, cluster)
    assert not ended
    assert ("it has not ended within 280 s" in said) is ("finishedAt" not in status)


@pytest.mark.parametrize("name", ["password.py", "first_job.py"])
def test_program_says_in_one_line_that_it_is_not_in_a_pod(
    name: str, tmp_path: pathlib.Path
) -> None:
    said = subprocess.run(
        [sys.executable, _FILES / name, "here", "x"],
        capture_output=True, text=True, check=False, cwd=tmp_path,
    )  # fmt: skip
    assert said.returncode == 1
    assert len(said.stderr.splitlines()) == 1


def test_programs_are_mounted_as_they_are() -> None:
    data = chart.find(chart.render(), "ConfigMap", "workron-programs")["data"]
    assert {name: text.strip() for name, text in data.items()} == {
        path.name: path.read_text().strip() for path in _FILES.glob("*.py")
    }
