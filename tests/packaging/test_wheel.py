"""The wheel contains the four packages completely, and nothing else of the repository."""

import pathlib
import subprocess
import sys
import zipfile

import pytest

_ROOT = pathlib.Path(__file__).parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """The names of the files in a wheel built from this tree."""
    target = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(target)]
    subprocess.run(build, cwd=_ROOT, check=True, capture_output=True)
    (built,) = target.glob("*.whl")
    return set(zipfile.ZipFile(built).namelist())


def test_wheel_holds_exactly_the_four_packages(wheel: set[str]) -> None:
    tops = {name.split("/")[0] for name in wheel}
    assert {top for top in tops if not top.endswith(".dist-info")} == {
        "workron", "workron_controller", "workron_worker", "workron_runner",
    }  # fmt: skip


def test_wheel_holds_every_source_file_of_the_packages(wheel: set[str]) -> None:
    expected = {
        str(path.relative_to(folder))
        for folder, package in (
            (_ROOT, "workron"),
            (_ROOT / "controller", "workron_controller"),
            (_ROOT / "worker_image", "workron_worker"),
            (_ROOT / "worker_image", "workron_runner"),
        )
        for path in (folder / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert {name for name in wheel if ".dist-info/" not in name} == expected


def test_wheel_holds_the_sql_of_each_store(wheel: set[str]) -> None:
    stores = {name.split("/")[2] for name in wheel if name.endswith(".sql")}
    assert stores == {"postgres", "sqlite"}
