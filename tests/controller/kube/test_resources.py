"""Paths of resources."""

import pytest

from workron_controller.kube.resources import ApiResource, ResourcePath

_JOBS = ApiResource("workron.dev", "v1alpha1", "workronjobs")
_PODS = ApiResource("", "v1", "pods")


@pytest.mark.parametrize(
    ("path", "url_path"),
    [
        (_JOBS.at(), "/apis/workron.dev/v1alpha1/workronjobs"),
        (_JOBS.at("ns"), "/apis/workron.dev/v1alpha1/namespaces/ns/workronjobs"),
        (_JOBS.at("ns", "a"), "/apis/workron.dev/v1alpha1/namespaces/ns/workronjobs/a"),
        (
            _JOBS.at("ns", "a", "status"),
            "/apis/workron.dev/v1alpha1/namespaces/ns/workronjobs/a/status",
        ),
        (_PODS.at("ns", "a"), "/api/v1/namespaces/ns/pods/a"),
        (ApiResource("", "v1", "nodes").at(name="one"), "/api/v1/nodes/one"),
    ],
)
def test_path_is_that_of_the_api(path: ResourcePath, url_path: str) -> None:
    assert path.path == url_path


def test_name_is_quoted_when_it_looks_like_a_path() -> None:
    path = _PODS.at("ns", "../secrets/x?a")
    assert path.path == "/api/v1/namespaces/ns/pods/..%2Fsecrets%2Fx%3Fa"


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (_JOBS.at("ns", "a", "status"), "workronjobs.workron.dev/status ns/a"),
        (_JOBS.at(), "workronjobs.workron.dev"),
        (_PODS.at("ns"), "pods ns"),
    ],
)
def test_path_is_shown_as_resource_and_name(path: ResourcePath, text: str) -> None:
    assert str(path) == text
