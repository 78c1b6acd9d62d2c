"""The runner in one file, and what a Python that is too old says of it."""

import ast
import pathlib
import subprocess
import sys

import pytest

import workron_runner
from tests.runner.mate import Mate
from workron_runner import pack

_HOME = pathlib.Path(workron_runner.__file__).parent


def _run(*words: object, **fields: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, *map(str, words)]
    return subprocess.run(command, text=True, capture_output=True, check=False, env=fields)


def test_file_is_written_by_its_command_and_runs_commands_by_itself(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "runner.pyz"
    written = _run("-m", "workron_runner.pack", path, PYTHONPATH=str(_HOME.parent))
    assert (written.returncode, written.stderr) == (0, "")
    assert path.stat().st_mode & 0o777 == 0o644
    mate = Mate(tmp_path, command=[sys.executable, "-IS", str(path)])
    mate.greet()
    claim = mate.run("echo on")
    assert mate.ended(claim).exit_code == 0
    assert mate.kept[claim] == b"on\n"
    mate.close()
    assert list(tmp_path.iterdir()) == [path]


def test_file_replaces_one_of_another_release_whole(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "runner.pyz"
    path.write_bytes(b"older")
    pack.write(path)
    assert _run("-IS", path, "--help").returncode == 0
    assert list(tmp_path.iterdir()) == [path]


def test_place_where_nothing_can_be_written_is_said(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["pack", str(tmp_path / "no" / "runner.pyz")])
    with pytest.raises(SystemExit):
        pack.main()
    assert "runner.pyz: No such file or directory" in capsys.readouterr().err


def test_python_that_is_too_old_is_told_so_before_it_meets_what_it_cannot_read(
    tmp_path: pathlib.Path,
) -> None:
    path = tmp_path / "runner.pyz"
    pack.write(path)
    as_old = "import runpy, sys; sys.version_info = (3, 9, 2); runpy.run_path(sys.argv[1])"
    said = _run("-c", as_old, path)
    assert said.returncode == 1
    wanted = f"workron_runner needs Python 3.11 or newer, and {sys.executable} is 3.9\n"
    assert said.stderr == wanted


def test_what_says_so_can_be_read_by_any_python_3() -> None:
    for text in ((_HOME / "__init__.py").read_text(), pack._MAIN):
        ast.parse(text, feature_version=(3, 6))
