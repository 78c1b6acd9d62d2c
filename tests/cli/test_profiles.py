"""Profiles name a store and a namespace; flags and variables win."""

import pathlib

import pytest

from tests.cli.conftest import Call, Write

_FILE = """
profile = "laptop"
[profiles.laptop]
store = "{laptop}"
[profiles.team]
store = "{team}"
namespace = "team"
"""

_JOB = """
apiVersion: workron.dev/v1alpha1
kind: Job
metadata: {name: ours}
spec: {command: "true"}
"""


@pytest.fixture
def config(tmp_path: pathlib.Path) -> pathlib.Path:
    """The file with the profiles, which does not exist yet."""
    folder = tmp_path / "config" / "workron"
    folder.mkdir(parents=True)
    return folder / "config.toml"


@pytest.fixture
def stores(call: Call, write: Write, tmp_path: pathlib.Path, config: pathlib.Path) -> list[str]:
    """The URLs of two stores with a job each, which two profiles name."""
    urls = [f"sqlite:///{tmp_path}/{name}.db" for name in ("laptop", "team")]
    config.write_text(_FILE.format(laptop=urls[0], team=urls[1]))
    assert call("submit", write("here"), "--store", urls[0]).code == 0
    assert call("submit", write("there"), "-n", "team", "--store", urls[1]).code == 0
    return urls


@pytest.mark.usefixtures("stores")
def test_profile_of_the_file_is_used_when_none_is_named(call: Call) -> None:
    assert "job/here" in call("get").out


@pytest.mark.usefixtures("stores")
def test_named_profile_has_the_store_and_the_namespace(
    call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "job/there" in call("get", "--profile", "team").out
    monkeypatch.setenv("WORKRON_PROFILE", "team")
    assert "job/there" in call("get").out
    assert "job/here" in call("get", "--profile", "laptop").out


def test_flags_and_variables_win_over_the_profile(
    call: Call, stores: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "job/there" in call("get", "-n", "team", "--store", stores[1]).out
    assert "namespace 'default'" in call("get", "--profile", "team", "-n", "default").err
    monkeypatch.setenv("WORKRON_STORE", stores[1])
    assert "job/there" in call("get", "-n", "team").out
    assert "job/here" in call("get", "--store", stores[0]).out


@pytest.mark.usefixtures("stores")
def test_namespace_of_the_profile_is_for_manifests_that_set_none(call: Call, write: Write) -> None:
    own = write("own")
    own.write_text(own.read_text().replace("{name: own}", "{name: own, namespace: mine}"))
    assert call("submit", own, write("plain"), "--profile", "team").code == 0
    assert "job/plain" in call("get", "--profile", "team").out
    assert "job/own" in call("get", "-n", "mine", "--profile", "team").out
    result = call("submit", own, "-n", "team", "--profile", "team")
    assert (result.code, "but --namespace is 'team'" in result.err) == (2, True)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("profile = ", "config.toml: Invalid value (at"),
        ('profile = "other"\n[profiles.a]\nstore = "b"', "has no profile 'other'; it has a"),
        ('profile = "other"', "has no profile 'other'; it has no profiles"),
        ("[profiles.a]\nurl = 'b'", "a profile has texts for store and namespace"),
        ("[profiles.a]\nstore = 5", "a profile has texts for store and namespace"),
        ("store = 'x'", "unknown key 'store'; write `[profiles.NAME]`"),
        ("a = '\udcff'", "is not text in UTF-8"),
    ],
)
def test_file_is_refused_with_the_right_form(
    call: Call, config: pathlib.Path, text: str, words: str
) -> None:
    config.write_bytes(text.encode(errors="surrogateescape"))
    result = call("get", "--store", "sqlite:///none.db")
    assert result.code == 2
    assert words in result.err
    assert call("get", "--help").code == 0


def test_profile_is_refused_when_there_is_no_file(call: Call) -> None:
    result = call("get", "--profile", "team")
    assert result.code == 2
    assert "no profile 'team': " in result.err
    assert "config.toml: No such file or directory" in result.err


def test_worker_takes_the_store_of_the_profile_only(call: Call, stores: list[str]) -> None:
    call("submit", "-", "--store", stores[1], stdin=_JOB)
    assert call("worker", "--profile", "team", "--max-jobs", 1).code == 0
    assert "job/ours Succeeded" in call("wait", "ours", "--store", stores[1]).out
