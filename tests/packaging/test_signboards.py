"""Every package says at its door what belongs in it, what does not, and who calls it."""

import ast
import pathlib

import pytest

_ROOT = pathlib.Path(__file__).parents[2]
_YARD = _ROOT / "worker_image"
_CONTROLLER = _ROOT / "controller" / "workron_controller"
_PACKAGES = [_ROOT / "workron", _CONTROLLER, _YARD / "workron_worker", _YARD / "workron_runner"]
_SURFACE = _ROOT / "workron" / "__init__.py"
_DOORS = [
    door for package in _PACKAGES for door in package.rglob("__init__.py") if door != _SURFACE
]


@pytest.mark.parametrize("door", _DOORS, ids=lambda door: str(door.relative_to(_ROOT)))
def test_package_has_a_signboard_in_its_docstring(door: pathlib.Path) -> None:
    words = ast.get_docstring(ast.parse(door.read_text())) or ""
    missing = [
        part
        for part in ("Belongs here:", "Does not belong here:", "Called by:")
        if part not in words
    ]
    assert missing == []


@pytest.mark.parametrize("package", _PACKAGES, ids=lambda package: package.name)
def test_folder_with_modules_is_a_package_with_a_door(package: pathlib.Path) -> None:
    folders = {module.parent for module in package.rglob("*.py")}
    assert {folder for folder in folders if not (folder / "__init__.py").exists()} == set()
