"""Peers are installed once and whole, and those that are not here are left out."""

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
    raise OSError("the network is gone")


def _queue(at: pathlib.Path) -> draining.Queue:
    return draining.Queue(at.name, lambda *_: None, lambda _: [], "SELECT 0")


def _peer(name: str, divisor: int = 1) -> Peer:
    return Peer(name, _write, _queue, divisor)


def _roster(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    monkeypatch.setattr(registry, "EVERY", [_peer(name) for name in names])
    monkeypatch.setattr(registry, "OTHERS", ())


def test_what_was_begun_and_not_finished_is_begun_anew(folder: pathlib.Path) -> None:
    with pytest.raises(OSError, match="network"):
        Peer("some", _fail, _queue).install("1")
    assert (folder / "some" / "put").exists()
    assert not _peer("some").is_installed("1")
    _peer("some").install("1")
    assert _peer("some").is_installed("1")


def test_what_is_installed_is_left_alone() -> None:
    _peer("some").install("1")
    Peer("some", _fail, _queue).install("1")
    assert _peer("some").is_installed("1")


def test_another_version_takes_the_place_of_the_one_before(folder: pathlib.Path) -> None:
    _peer("some").install("1")
    assert not _peer("some").is_installed("2")
    _peer("some").install("2")
    assert (folder / "some" / "put").read_text() == "2"
    assert not _peer("some").is_installed("1")


def test_peers_that_are_missing_are_left_out_and_named(monkeypatch: pytest.MonkeyPatch) -> None:
    _roster(monkeypatch, "some", "other", "river")
    _peer("some").install("1")
    assert [one.name for one in registry.installed(_SETTINGS)] == ["some"]
    assert registry.missing(_SETTINGS) == ["other", "river"]


def test_ours_is_held_against_those_that_are_here_with_the_goal_of_each(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _roster(monkeypatch, "some", "other", "river")
    for name in ("some", "river"):
        _peer(name).install("1")
    held = [(one.side.title, one.goal) for one in against.noop(_SETTINGS, "postgresql:///")]
    assert held == [("some", None), ("river", Goal(1))]


def test_slow_peer_gets_fewer_jobs_but_never_none() -> None:
    assert _peer("some").share(30_000) == 30_000
    assert _peer("some", divisor=30).share(30_000) == 1_000
    assert _peer("some", divisor=30).share(20) == 1


def test_every_peer_and_every_goal_is_of_a_version() -> None:
    versions = config.read("smoke").peers
    names = [one.name for one in registry.EVERY]
    assert len(names) == len(set(names))
    assert {*names, *against.GOALS} <= set(versions)


def test_script_that_fails_is_told_of_with_what_it_said(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "venv" / "bin").mkdir(parents=True)
    (tmp_path / "venv" / "bin" / "python").symlink_to(sys.executable)
    (tmp_path / "on_some.py").write_text("import sys; sys.exit(' '.join(sys.argv[1:]))")
    monkeypatch.setattr(environment, "_SCRIPTS", tmp_path)
    queue = environment.queue("Some", "on_some.py", "SELECT 0")(tmp_path)
    with pytest.raises(RuntimeError, match="failed: load postgresql:///here 7"):
        queue.load("postgresql:///here", 7)
