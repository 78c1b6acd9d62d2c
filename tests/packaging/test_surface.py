"""What `import workron` promises, by name, so that changing it is a decision, not an accident."""

import pathlib
import tomllib

import workron

_PROJECT = pathlib.Path(__file__).parents[2] / "pyproject.toml"


def test_surface_is_exactly_these_names() -> None:
    assert workron.__all__ == ["__version__"]


def test_version_is_the_one_of_the_project_file() -> None:
    assert workron.__version__ == tomllib.loads(_PROJECT.read_text())["project"]["version"]
