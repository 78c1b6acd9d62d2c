"""The public names of `import workron`; a change of them affects users."""

import pathlib
import tomllib

import workron

_PROJECT = pathlib.Path(__file__).parents[2] / "pyproject.toml"


def test_public_names() -> None:
    assert workron.__all__ == ["__version__"]


def test_version_matches_the_project_file() -> None:
    assert workron.__version__ == tomllib.loads(_PROJECT.read_text())["project"]["version"]
