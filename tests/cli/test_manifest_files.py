"""A relative workdir means the folder of the file where the command runs, and nothing elsewhere."""

import json
import pathlib

import pytest

from tests.cli.conftest import Call, Write


def _manifest(name: str, workdir: str) -> str:
    spec = {"tasks": [{"name": "a", "command": "pwd", "workdir": workdir}]}
    head = {"apiVersion": "workron.dev/v1alpha1", "kind": "Workflow", "metadata": {"name": name}}
    return json.dumps(head | {"spec": spec})


@pytest.mark.parametrize(
    ("workdir", "folder"), [(".", ""), ("data/in", "data/in"), ("data/../data", "data")]
)
def test_command_starts_in_a_folder_beside_the_file_when_its_workdir_is_relative(
    call: Call, tmp_path: pathlib.Path, url: str, workdir: str, folder: str
) -> None:
    (tmp_path / "data" / "in").mkdir(parents=True)
    file = tmp_path / "flow.json"
    file.write_text(_manifest("flow", workdir))
    assert call("run", file, "--store", url).code == 0
    assert call("output", "flow/a", "--store", url).out == f"{tmp_path / folder}\n"


def test_command_starts_in_the_current_folder_when_the_file_is_standard_input(
    call: Call, url: str
) -> None:
    assert call("run", "-", "--store", url, stdin=_manifest("flow", ".")).code == 0
    assert call("output", "flow/a", "--store", url).out == f"{pathlib.Path.cwd()}\n"


def test_absolute_workdir_is_stored_as_it_is_written(
    call: Call, tmp_path: pathlib.Path, url: str
) -> None:
    (tmp_path / "data").mkdir()
    workdir = f"{tmp_path}//data/../data/"
    file = tmp_path / "flow.json"
    file.write_text(_manifest("flow", workdir))
    assert call("run", file, "--store", url).code == 0
    objects = json.loads(call("get", "flow", "--store", url, "-o", "json").out)
    assert f'"workdir": "{workdir}"' in json.dumps(objects)


def test_only_a_relative_workdir_needs_the_current_folder(
    call: Call, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "gone"
    folder.mkdir()
    monkeypatch.chdir(folder)
    folder.rmdir()
    assert call("run", "-", stdin=_manifest("flow", "/")).code == 0
    result = call("run", "-", stdin=_manifest("flow", "."))
    assert result.code == 2
    assert "the current folder does not exist any more; change to another one" in result.err


@pytest.mark.parametrize("command", ["validate", "graph"])
def test_file_with_a_relative_workdir_is_valid(call: Call, write: Write, command: str) -> None:
    file = write("job", more="workdir: data")
    assert call(command, file).code == 0


def test_relative_workdir_is_refused_when_other_workers_run_the_job(
    call: Call, tmp_path: pathlib.Path, url: str
) -> None:
    file = tmp_path / "flow.json"
    file.write_text(_manifest("flow", "data"))
    result = call("submit", file, "--store", url)
    assert result.code == 2
    assert result.err == (
        f"workron: {file}:1: the workdir 'data' is relative; only `workron run` resolves it, from"
        " the folder of the file: write an absolute path\n"
    )
