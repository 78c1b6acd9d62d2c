"""The runner can be copied alone beside any Python: it imports nothing that is not there."""

import ast
import pathlib
import sys

import pytest

import workron_runner

_MODULES = sorted(pathlib.Path(workron_runner.__file__).parent.glob("*.py"))


def _imported(module: pathlib.Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(module.read_text())):
        if isinstance(node, ast.Import):
            names.update(one.name for one in node.names)
        elif isinstance(node, ast.ImportFrom):
            names.add(node.module or "")
    return {name.partition(".")[0] for name in names}


@pytest.mark.parametrize("module", _MODULES, ids=lambda one: one.stem)
def test_module_imports_only_the_standard_library_and_its_own_package(
    module: pathlib.Path,
) -> None:
    assert _imported(module) - sys.stdlib_module_names - {"workron_runner"} == set()
