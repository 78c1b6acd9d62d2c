"""Fixtures for the tests of the chart: each version of Helm, and each values file."""

import os
import pathlib
from typing import Any

import pytest

from tests.helm import chart

_FOLDER = pathlib.Path(__file__).parent


@pytest.fixture(scope="session", autouse=True)
def _shared_renderings(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Render each values file once per session, also with several pytest processes."""
    folder = tmp_path_factory.getbasetemp()
    is_one_of_many = "PYTEST_XDIST_WORKER" in os.environ
    chart.share_renderings((folder.parent if is_one_of_many else folder) / "charts")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark these tests as slow: each starts Helm at least once."""
    for item in items:
        if _FOLDER in item.path.parents:
            item.add_marker(pytest.mark.slow)


@pytest.fixture(params=chart.HELMS)
def helm(request: pytest.FixtureRequest) -> str:
    """Each installed version of Helm."""
    name: str = request.param
    chart.require(name)
    return name


@pytest.fixture(params=chart.CASES, ids=lambda path: path.stem)
def case(request: pytest.FixtureRequest) -> pathlib.Path:
    """Each values file in `ci/`."""
    path: pathlib.Path = request.param
    return path


@pytest.fixture
def objects(case: pathlib.Path) -> list[dict[str, Any]]:
    """The objects of a release with each values file."""
    return chart.render(values=case)
