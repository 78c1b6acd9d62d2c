"""`make e2e` fails where it cannot test: tests that did not run never count as passed."""

import contextlib
import os
import pathlib
from collections.abc import Iterator

import pytest

from e2e import __main__ as e2e_main
from e2e import containers, harness
from e2e.cluster import Cluster
from e2e.release import Release


class FakePytest:
    """Records which parts are run, and returns one exit code."""

    def __init__(self, code: int = 0) -> None:
        self.labels: list[str] = []
        self._code = code

    def __call__(self, label: str, *_arguments: object, **_environment: str) -> int:
        self.labels.append(label)
        return self._code


@contextlib.contextmanager
def _installed() -> Iterator[Release]:
    yield Release(Cluster(pathlib.Path("kubeconfig")), "tag")


def _no_cluster() -> contextlib.AbstractContextManager[Release]:
    raise harness.NoClusterError("kind create cluster failed: no cgroups")


@pytest.fixture
def tools(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> pathlib.Path:
    """A PATH with every tool on it; the mode is the default one."""
    for name in ("docker", "kind", "kubectl", "helm", "helm3"):
        (tmp_path / name).touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("WORKRON_E2E_CLUSTER", raising=False)
    return tmp_path


@pytest.mark.usefixtures("tools")
def test_all_parts_run_when_every_tool_is_installed() -> None:
    run = FakePytest()
    assert e2e_main.main([], run, _installed) == 0
    assert run.labels == ["without a cluster", "side by side", "one at a time"]


def test_run_fails_before_any_test_when_a_tool_is_missing(
    tools: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tools / "kind").unlink()
    run = FakePytest()
    assert e2e_main.main([], run, _installed) == 1
    assert run.labels == []
    message = capsys.readouterr().err
    assert "NOT TESTED: e2e/promises: not on the PATH: kind" in message
    assert "WORKRON_E2E_CLUSTER=optional" in message


@pytest.mark.parametrize("tool", ["docker", "kubectl", "helm", "helm3"])
def test_run_fails_when_any_one_tool_is_missing(tools: pathlib.Path, tool: str) -> None:
    (tools / tool).unlink()
    assert e2e_main.main([], FakePytest(), _installed) == 1


def test_cluster_tests_are_left_out_and_named_when_the_cluster_is_optional(
    tools: pathlib.Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WORKRON_E2E_CLUSTER", "optional")
    (tools / "kind").unlink()
    run = FakePytest()
    assert e2e_main.main([], run, _installed) == 0
    assert run.labels == ["without a cluster"]
    assert "NOT TESTED: e2e/promises" in capsys.readouterr().err


@pytest.mark.usefixtures("tools")
def test_run_fails_when_kind_cannot_make_a_cluster(capsys: pytest.CaptureFixture[str]) -> None:
    assert e2e_main.main([], FakePytest(), _no_cluster) == 1
    assert "NOT TESTED: e2e/promises: kind create cluster failed" in capsys.readouterr().err


@pytest.mark.usefixtures("tools")
def test_failure_of_a_test_is_kept_when_the_cluster_is_optional(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("WORKRON_E2E_CLUSTER", "optional")
    assert e2e_main.main([], FakePytest(code=1), _no_cluster) == 1


@pytest.mark.parametrize(
    ("mode", "outcome"), [("", pytest.fail.Exception), ("optional", pytest.skip.Exception)]
)
def test_image_tests_fail_without_docker_unless_they_are_optional(
    monkeypatch: pytest.MonkeyPatch, mode: str, outcome: type[BaseException]
) -> None:
    monkeypatch.setenv("PATH", os.devnull)
    monkeypatch.setenv("WORKRON_E2E_IMAGE", mode)
    with pytest.raises(outcome, match="docker is not on the PATH"):
        containers.require_docker()
