"""What the tests of the chart share: each version of Helm, and each file of values."""

import pathlib
from typing import Any

import pytest

from tests.helm import chart


@pytest.fixture(params=chart.HELMS)
def helm(request: pytest.FixtureRequest) -> str:
    """A version of Helm that is installed."""
    name: str = request.param
    chart.need(name)
    return name


@pytest.fixture(params=chart.CASES, ids=lambda path: path.stem)
def case(request: pytest.FixtureRequest) -> pathlib.Path:
    """Values that somebody may have."""
    path: pathlib.Path = request.param
    return path


@pytest.fixture
def objects(case: pathlib.Path) -> list[dict[str, Any]]:
    """What a release with those values consists of."""
    return chart.render(values=case)
