"""The committed definitions are those of the models, and small enough for a chart."""

import pathlib

import pytest

from workron.core.manifest import yaml_reader
from workron_controller.crds import __main__, schema
from workron_controller.crds.kinds import KINDS, CustomResourceKind

_FOLDER = pathlib.Path(__file__).parents[3] / "crds"
_CHART_BYTES = 150_000
"""Helm keeps a release in one Secret, and the definitions are only a part of it."""


def test_committed_definitions_are_those_of_the_models() -> None:
    assert {file.name: file.read_text() for file in _FOLDER.iterdir()} == __main__.files()


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_definition_is_unchanged_when_the_yaml_reader_of_kubernetes_reads_it(
    kind: CustomResourceKind,
) -> None:
    (document,) = yaml_reader.read_documents(__main__.files()[f"{kind.plural}.yaml"].encode())
    assert document.problems == []
    assert "&id" not in __main__.files()[f"{kind.plural}.yaml"]
    assert document.value == schema.definition(kind)


def test_definitions_are_small_enough_for_a_chart() -> None:
    assert sum(file.stat().st_size for file in _FOLDER.iterdir()) < _CHART_BYTES


def test_check_names_a_file_when_it_is_outdated(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert __main__.main([str(tmp_path)]) == 0
    assert __main__.main(["--check", str(tmp_path)]) == 0
    (tmp_path / "workronjobs.yaml").write_text("kind: Other\n")
    capsys.readouterr()
    assert __main__.main(["--check", str(tmp_path)]) == 1
    printed = capsys.readouterr()
    assert printed.err.count("run `make generate`") == 1
    assert "workronjobs.yaml" in printed.err


def test_file_is_not_written_again_when_it_is_up_to_date(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    __main__.main([str(tmp_path)])
    capsys.readouterr()
    __main__.main([str(tmp_path)])
    assert capsys.readouterr().out == ""
