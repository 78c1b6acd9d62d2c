"""The generated files of the chart are up to date."""

import pytest
import yaml

from helm import definitions, generate, readme
from tests.helm import chart


def test_generated_files_are_up_to_date() -> None:
    stale = [str(path) for path, text in generate.files().items() if path.read_text() != text]
    assert stale == [], "run `make generate`"


def test_chart_has_a_template_for_each_definition_and_no_other() -> None:
    made = {path.name for path in (chart.ROOT / "crds").glob("*.yaml")}
    assert {path.name for path in (chart.CHART / "templates" / "crds").iterdir()} == made


@pytest.mark.parametrize("name", ["workronjobs", "workronflows", "workerpools"])
def test_rendered_definition_equals_the_definition(name: str) -> None:
    rendered = chart.find(chart.render(), "CustomResourceDefinition", f"{name}.workron.dev")
    definition = yaml.safe_load((chart.ROOT / "crds" / f"{name}.yaml").read_text())
    assert rendered["spec"] == definition["spec"]


def test_braces_in_a_definition_are_not_a_template() -> None:
    text = "metadata:\n  name: x\nspec: '{{ .Values.x }}'\n"
    assert """{{ "{{" }} .Values.x }}""" in definitions.template(text)


def test_definition_without_a_name_is_rejected() -> None:
    with pytest.raises(ValueError, match="does not begin with `metadata:`"):
        definitions.template("spec: {}\n")


def test_value_without_a_comment_is_rejected() -> None:
    with pytest.raises(ValueError, match=r"a\.b has no comment"):
        readme.described("a:\n  b: 1\n")


def test_comment_of_several_lines_is_joined() -> None:
    [one] = readme.described("a:\n  # One\n  # two.\n  b: {c: 1}\n")
    assert one == ("a.b", '{"c": 1}', "One two.")


def test_check_names_files_that_are_out_of_date(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = chart.CHART / "README.md"
    monkeypatch.setattr(generate, "files", lambda: {path: "other"})
    assert generate.main(["--check"]) == 1
    assert "README.md is out of date; run `make generate`" in capsys.readouterr().err
