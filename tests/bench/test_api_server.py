"""The rate of an API server is measured if KUBECONFIG names one, and the namespace is deleted."""

import http.server
import json
import pathlib
import threading
from collections.abc import Iterator

import pytest

from bench import config, limits
from bench.limit import api_server


class _Api(http.server.BaseHTTPRequestHandler):
    """A fake API server that records the requests in their order."""

    protocol_version = "HTTP/1.1"
    asked: list[str]
    refused: str

    def _answer(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.asked.append(f"{self.command} {self.path.partition('/bench-')[0]}")
        if self.command == "POST" and self.path.endswith("namespaces"):
            assert body["metadata"]["name"].startswith("workron-bench-")
        self.send_response(409 if self.command == self.refused else 200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    do_POST = do_PATCH = do_DELETE = _answer  # noqa: N815 - the names that the library calls

    def log_message(self, *args: object) -> None:
        """Log nothing."""


@pytest.fixture
def api(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[type[_Api]]:
    handler = type("Api", (_Api,), {"asked": [], "refused": ""})
    with http.server.HTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        file = tmp_path / "config"
        place = {"server": f"http://127.0.0.1:{server.server_port}"}
        file.write_text(
            json.dumps({
                "current-context": "here",
                "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u"}}],
                "clusters": [{"name": "c", "cluster": place}],
                "users": [{"name": "u", "user": {"token": "let me in"}}],
            })
        )  # fmt: skip
        monkeypatch.setenv("KUBECONFIG", str(file))
        yield handler
        server.shutdown()


def test_each_object_is_created_and_changed_in_a_temporary_namespace(
    api: type[_Api],
) -> None:
    assert api_server.writing(2).measure() > 0
    first, *between, last = api.asked
    place = last.removeprefix("DELETE ")
    assert first == "POST /api/v1/namespaces"
    assert between == [f"POST {place}/configmaps", f"PATCH {place}/configmaps"] * 2


def test_namespace_is_deleted_when_the_server_refuses(api: type[_Api]) -> None:
    api.refused = "PATCH"
    with pytest.raises(RuntimeError, match=r"PATCH .*: 409"):
        api_server.writing(2).measure()
    assert api.asked[-1].startswith("DELETE ")


def test_cluster_is_measured_only_when_kubeconfig_names_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settings = config.read("smoke")
    monkeypatch.setenv("KUBECONFIG", "/there")
    with_one = [one.side.title for one in limits.every(settings, "postgres:///d?host=/tmp")]
    monkeypatch.delenv("KUBECONFIG")
    without = [one.side.title for one in limits.every(settings, "postgres:///d?host=/tmp")]
    assert set(with_one) - set(without) == {
        "an API server, an object created and then changed, one after the other"
    }
