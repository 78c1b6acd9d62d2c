"""Each mistake of the catalogue gets its message and its exit code, and no traceback."""

import pathlib
import socket
import threading
from urllib import parse

import pytest

from tests.cli import mistakes, mistakes_in_calls
from tests.cli.conftest import Call, CallResult
from tests.cli.mistakes import Mistake


def _ids(mistake: Mistake) -> str:
    return mistake.name.replace(" ", "-")


def _make(mistake: Mistake, call: Call, *options: str) -> CallResult:
    content = mistake.file
    pathlib.Path("m.yaml").write_bytes(content if isinstance(content, bytes) else content.encode())
    return call(*mistake.arguments, *options, stdin=mistake.stdin)


def _check(mistake: Mistake, result: CallResult) -> None:
    printed = result.out + result.err
    assert mistake.message in printed
    assert result.code == mistake.code
    assert "bug in workron" not in printed
    assert not [value for value in mistake.environ.values() if value in printed]


@pytest.fixture(autouse=True)
def _folder(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("API_TOKEN", raising=False)


@pytest.mark.parametrize(
    "mistake", [*mistakes.MANIFESTS, *mistakes.YAML, *mistakes_in_calls.CALLS], ids=_ids
)
def test_message_says_what_is_wrong_where_and_what_to_do(mistake: Mistake, call: Call) -> None:
    _check(mistake, _make(mistake, call))


@pytest.mark.parametrize("mistake", mistakes_in_calls.STORED, ids=_ids)
def test_message_says_what_is_wrong_when_the_store_has_other_runs(
    mistake: Mistake, call: Call, tmp_path: pathlib.Path, url: str
) -> None:
    queued = tmp_path / "etl.yaml"
    queued.write_text(
        mistakes.flow("{name: load, command: x}", "{name: many, count: 2, command: x}")
    )
    assert call("submit", queued, "--store", url).code == 0
    _check(mistake, _make(mistake, call, "--store", url))


@pytest.mark.parametrize("mistake", mistakes_in_calls.RUNS, ids=_ids)
def test_failure_is_printed_with_a_hint(
    mistake: Mistake, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in mistake.environ.items():
        monkeypatch.setenv(name, value)
    _check(mistake, _make(mistake, call))


@pytest.mark.parametrize(
    ("path", "user", "message"),
    [
        ("/nowhere", "postgres", "does not exist; check the name in the URL, or create the"),
        ("/postgres", "no_such_role", "does not exist; check the user in the URL, and pg_hba.conf"),
    ],
)
def test_message_says_what_to_do_when_the_server_refuses_the_login(
    call: Call, postgres_dsn: str, path: str, user: str, message: str
) -> None:
    url = postgres_dsn.replace("//postgres@", f"//{user}@")
    url = parse.urlsplit(url)._replace(path=path).geturl()
    mistake = Mistake("login", message, mistakes.job("command: x"), code=3)
    _check(mistake, _make(mistake, call, "--store", url))


def test_message_says_what_to_do_when_the_server_refuses_the_password(call: Call) -> None:
    # The server of the tests asks for no password.
    refusal = b'SFATAL\0C28P01\0Mpassword authentication failed for user "me"\0\0'
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def refuse() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(4096)
                connection.sendall(b"E" + (len(refusal) + 4).to_bytes(4, "big") + refusal)

        server = threading.Thread(target=refuse)
        server.start()
        port = listener.getsockname()[1]
        url = f"postgresql://me:wrong@127.0.0.1:{port}/jobs?sslmode=disable"
        message = (
            f"postgresql://me:***@127.0.0.1:{port}/jobs?sslmode=disable: password authentication"
            ' failed for user "me"; check the user and the password in the URL, or set PGPASSWORD'
        )
        mistake = Mistake("password", message, mistakes.job("command: x"), code=3)
        _check(mistake, _make(mistake, call, "--store", url))
        server.join()
