"""The runner in one file, and what a Python that is too old says of it."""

import ast
import pathlib
import subprocess
import sys

import pytest

import workron_runner
from tests.runner.fake_agent import FakeAgent
from workron_runner import pack

_HOME = pathlib.Path(workron_runner.__file__).parent


def _run(*words: object, **fields: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, *map(str, words)]
    return subprocess.run(command, text=True, capture_output=True, check=False, env=fields)


def test_packed_file_runs_commands_when_no_package_is_installed(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "runner.pyz"
    written = _run("-m", "workron_runner.pack", path, PYTHONPATH=str(_HOME.parent))
    assert (written.returncode, written.stderr) == (0, "")
    assert path.stat().st_mode & 0o777 == 0o644
    with FakeAgent(tmp_path, command=[sys.executable, "-IS", str(path)]) as agent:
        claim = agent.run("echo on")
        assert agent.ended(claim).exit_code == 0
        assert agent.captured[claim] == b"on\n"
    assert list(tmp_path.iterdir()) == [path]


def test_packed_file_replaces_an_older_one(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "runner.pyz"
    path.write_bytes(b"older")
    pack.write(path)
    assert _run("-IS", path, "--help").returncode == 0
    assert list(tmp_path.iterdir()) == [path]


def test_error_names_the_path_when_it_cannot_be_written(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["pack", str(tmp_path / "no" / "runner.pyz")])
    with pytest.raises(SystemExit):
        pack.main()
    assert "runner.pyz: No such file or directory" in capsys.readouterr().err


def test_error_names_the_version_when_python_is_too_old(
    tmp_path: pathlib.Path,
) -> None:
    path = tmp_path / "runner.pyz"
    pack.write(path)
    as_old = "import runpy, sys; sys.version_info = (3, 9, 2); runpy.run_path(sys.argv[1])"
    said = _run("-c", as_old, path)
    assert said.returncode == 1
    wanted = f"workron_runner needs Python 3.11 or newer, and {sys.executable} is 3.9\n"
    assert said.stderr == wanted


def test_version_check_can_be_parsed_by_old_versions_of_python() -> None:
    for text in ((_HOME / "__init__.py").read_text(), pack._MAIN):
        ast.parse(text, feature_version=(3, 6))
