"""What ours is held against is installed whole, once, and in the version that the config has."""

import pathlib
import re

import pytest

from bench import config
from bench.peers import peer, registry
from bench.peers.peer import Kit

_SCRIPTS = pathlib.Path(registry.__file__).parent / "scripts"


@pytest.fixture(autouse=True)
def _nothing_is_installed(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    monkeypatch.setattr(peer, "_FOLDER", tmp_path)


def test_those_that_are_not_here_are_left_out_and_named() -> None:
    settings = config.read("smoke")
    assert registry.installed(settings) == []
    assert registry.missing(settings) == [one.name for one in (*registry.EVERY, *registry.OTHERS)]


def test_kit_is_put_once_for_each_version() -> None:
    put: list[str] = []
    kit = Kit("one", lambda folder, version: put.append(f"{version} {len(list(folder.iterdir()))}"))
    for version in ("1", "1", "2"):
        kit.install(version)
    assert put == ["1 0", "2 0"]
    assert kit.is_installed("2")
    assert not kit.is_installed("1")


def test_what_was_begun_and_not_finished_is_not_installed() -> None:
    def put(folder: pathlib.Path, version: str) -> None:
        (folder / version).touch()
        raise OSError("no network")

    kit = Kit("one", put)
    with pytest.raises(OSError, match="no network"):
        kit.install("1")
    assert (kit.folder / "1").is_file()
    assert not kit.is_installed("1")


@pytest.mark.parametrize(
    ("name", "module", "package"),
    [
        ("river", "river", "river"),
        ("river", "river", "river/riverdriver/riverpgxv5"),
        ("river-sqlite", "river_sqlite", "river/riverdriver/riversqlite"),
        ("river-sqlite", "river_sqlite", "river"),
    ],
)
def test_module_of_go_asks_for_the_version_of_the_config(
    name: str, module: str, package: str
) -> None:
    asked = (_SCRIPTS / module / "go.mod").read_text()
    (version,) = re.findall(rf"riverqueue/{package} (\S+)", asked)
    assert version == config.read().peers[name]
