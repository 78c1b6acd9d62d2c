"""Systems for comparison are installed completely, once, and in the configured version."""

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


def test_systems_are_omitted_and_named_when_none_is_installed() -> None:
    settings = config.read("smoke")
    assert registry.installed(settings) == []
    assert registry.missing(settings) == [one.name for one in (*registry.EVERY, *registry.OTHERS)]


def test_system_is_installed_once_for_each_version() -> None:
    put: list[str] = []
    kit = Kit("one", lambda folder, version: put.append(f"{version} {len(list(folder.iterdir()))}"))
    for version in ("1", "1", "2"):
        kit.install(version)
    assert put == ["1 0", "2 0"]
    assert kit.is_installed("2")
    assert not kit.is_installed("1")


def test_system_is_not_installed_when_its_installation_failed() -> None:
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
def test_go_module_requires_the_configured_version(name: str, module: str, package: str) -> None:
    text = (_SCRIPTS / module / "go.mod").read_text()
    (version,) = re.findall(rf"riverqueue/{package} (\S+)", text)
    assert version == config.read().peers[name]
