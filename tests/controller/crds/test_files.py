"""The committed definitions: what the models say, and as small as a chart needs them."""

import pathlib

import pytest

from workron.core.manifest import yaml_reader
from workron_controller.crds import __main__, schema
from workron_controller.crds.kinds import KINDS, CustomResourceKind

_FOLDER = pathlib.Path(__file__).parents[3] / "crds"
_CHART_BYTES = 150_000
"""Helm keeps a release in one Secret, and the definitions are only a part of it."""


def test_committed_definitions_are_what_the_models_say() -> None:
    assert {file.name: file.read_text() for file in _FOLDER.iterdir()} == __main__.files()


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_definition_is_read_by_kubernetes_reader_as_it_was_made(kind: CustomResourceKind) -> None:
    (document,) = yaml_reader.read_documents(__main__.files()[f"{kind.plural}.yaml"].encode())
    assert document.problems == []
    assert "&id" not in __main__.files()[f"{kind.plural}.yaml"]
    assert document.value == schema.definition(kind)


def test_definitions_are_small_enough_for_a_chart() -> None:
    assert sum(file.stat().st_size for file in _FOLDER.iterdir()) < _CHART_BYTES


def test_check_names_a_file_that_is_out_of_date(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert __main__.main([str(tmp_path)]) == 0
    assert __main__.main(["--check", str(tmp_path)]) == 0
    (tmp_path / "workronjobs.yaml").write_text("kind: Other\n")
    capsys.readouterr()
    assert __main__.main(["--check", str(tmp_path)]) == 1
    told = capsys.readouterr()
    assert told.err.count("run `make generate`") == 1
    assert "workronjobs.yaml" in told.err


def test_what_is_up_to_date_is_not_written_again(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    __main__.main([str(tmp_path)])
    capsys.readouterr()
    __main__.main([str(tmp_path)])
    assert capsys.readouterr().out == ""
