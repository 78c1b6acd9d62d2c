"""Fixtures: one release for all tests, and one namespace for each file."""

import pathlib
from collections.abc import Generator, Iterator

import pytest

from e2e import diagnostics, harness
from e2e.cluster import Cluster
from e2e.namespace import Namespace
from e2e.release import Release


@pytest.fixture(scope="session")
def release() -> Iterator[Release]:
    """The release, on a cluster with two nodes for workers."""
    with harness.shared_release() as one:
        yield one


@pytest.fixture(scope="session")
def cluster(release: Release) -> Cluster:
    """The cluster of the release."""
    return release.cluster


@pytest.fixture(scope="module")
def namespace(request: pytest.FixtureRequest, cluster: Cluster) -> Iterator[Namespace]:
    """The namespace of this file, without objects of Workron at first."""
    one = Namespace(cluster, harness.namespace_of(pathlib.Path(request.path)))
    one.clear()
    yield one
    one.clear()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Function,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Save diagnostics of the cluster when a test has failed."""
    report = yield
    if report.when == "call" and report.failed:
        release = item.funcargs["release"]
        assert isinstance(release, Release)
        report.sections.append(("diagnostics", diagnostics.save(item.name, release)))
    return report
