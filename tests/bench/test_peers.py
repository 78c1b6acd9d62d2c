"""Peers are installed once and completely, and only installed ones are compared."""

import pathlib
import sys

import pytest

from bench import config, draining
from bench.config import Config
from bench.figure import Goal
from bench.peers import against, environment, peer, registry
from bench.peers.peer import Peer

_SETTINGS = Config({}, {"noop": 50}, {}, {}, {"some": "1", "other": "1", "river": "1"})


@pytest.fixture(autouse=True)
def folder(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    monkeypatch.setattr(peer, "_FOLDER", tmp_path)
    return tmp_path


def _write(at: pathlib.Path, version: str) -> None:
    assert not list(at.iterdir())
    (at / "put").write_text(version)


def _fail(at: pathlib.Path, version: str) -> None:
    _write(at, version)
    raise OSError("the network is down")


def _queue(at: pathlib.Path) -> draining.Queue:
    return draining.Queue(at.name, lambda *_: None, lambda _: [], "SELECT 0")


def _peer(name: str, divisor: int = 1) -> Peer:
    return Peer(name, _write, _queue, divisor)


def _set_peers(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    monkeypatch.setattr(registry, "EVERY", [_peer(name) for name in names])
    monkeypatch.setattr(registry, "OTHERS", ())


def test_installation_is_repeated_when_it_was_incomplete(folder: pathlib.Path) -> None:
    with pytest.raises(OSError, match="network"):
        Peer("some", _fail, _queue).install("1")
    assert (folder / "some" / "put").exists()
    assert not _peer("some").is_installed("1")
    _peer("some").install("1")
    assert _peer("some").is_installed("1")


def test_installation_is_skipped_when_the_version_is_installed() -> None:
    _peer("some").install("1")
    Peer("some", _fail, _queue).install("1")
    assert _peer("some").is_installed("1")


def test_installation_replaces_another_version(folder: pathlib.Path) -> None:
    _peer("some").install("1")
    assert not _peer("some").is_installed("2")
    _peer("some").install("2")
    assert (folder / "some" / "put").read_text() == "2"
    assert not _peer("some").is_installed("1")


def test_peers_are_omitted_and_named_when_they_are_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    _set_peers(monkeypatch, "some", "other", "river")
    _peer("some").install("1")
    assert [one.name for one in registry.installed(_SETTINGS)] == ["some"]
    assert registry.missing(_SETTINGS) == ["other", "river"]


def test_installed_peers_are_compared_with_their_goals(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _set_peers(monkeypatch, "some", "other", "river")
    for name in ("some", "river"):
        _peer(name).install("1")
    compared = [(one.side.title, one.goal) for one in against.noop(_SETTINGS, "postgresql:///")]
    assert compared == [("some", None), ("river", Goal(1))]


def test_slow_peer_gets_fewer_jobs_but_at_least_one() -> None:
    assert _peer("some").share(30_000) == 30_000
    assert _peer("some", divisor=30).share(30_000) == 1_000
    assert _peer("some", divisor=30).share(20) == 1


def test_every_peer_and_every_goal_has_a_version() -> None:
    versions = config.read("smoke").peers
    names = [one.name for one in registry.EVERY]
    assert len(names) == len(set(names))
    assert {*names, *against.GOALS} <= set(versions)


def test_error_has_the_output_when_a_script_fails(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "venv" / "bin").mkdir(parents=True)
    (tmp_path / "venv" / "bin" / "python").symlink_to(sys.executable)
    (tmp_path / "on_some.py").write_text("import sys; sys.exit(' '.join(sys.argv[1:]))")
    monkeypatch.setattr(environment, "_SCRIPTS", tmp_path)
    queue = environment.queue("Some", "on_some.py", "SELECT 0")(tmp_path)
    with pytest.raises(RuntimeError, match="failed: load postgresql:///here 7"):
        queue.load("postgresql:///here", 7)
