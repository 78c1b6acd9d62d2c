"""One release for all, and a namespace for each file."""

import pathlib
from collections.abc import Generator, Iterator

import pytest

from e2e import evidence, harness
from e2e.cluster import Cluster
from e2e.place import Place
from e2e.release import Release


@pytest.fixture(scope="session")
def release() -> Iterator[Release]:
    """The release, on a cluster with two nodes of workers."""
    with harness.shared() as one:
        yield one


@pytest.fixture(scope="session")
def cluster(release: Release) -> Cluster:
    """The cluster that it is on."""
    return release.cluster


@pytest.fixture(scope="module")
def place(request: pytest.FixtureRequest, cluster: Cluster) -> Iterator[Place]:
    """The namespace of this file, which nothing of ours is in at first."""
    one = Place(cluster, harness.place_of(pathlib.Path(request.path)))
    one.clear()
    yield one
    one.clear()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Function,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Keep what the cluster says where a test has failed."""
    report = yield
    if report.when == "call" and report.failed:
        release = item.funcargs["release"]
        assert isinstance(release, Release)
        report.sections.append(("evidence", evidence.saved(item.name, release)))
    return report
