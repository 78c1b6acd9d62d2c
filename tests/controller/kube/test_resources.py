"""Where things are."""

import pytest

from workron_controller.kube.resources import ApiResource, ResourcePath

_JOBS = ApiResource("workron.dev", "v1alpha1", "workronjobs")
_PODS = ApiResource("", "v1", "pods")


@pytest.mark.parametrize(
    ("place", "path"),
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
def test_path_is_that_of_the_api(place: ResourcePath, path: str) -> None:
    assert place.path == path


def test_name_cannot_lead_to_another_place() -> None:
    place = _PODS.at("ns", "../secrets/x?a")
    assert place.path == "/api/v1/namespaces/ns/pods/..%2Fsecrets%2Fx%3Fa"


@pytest.mark.parametrize(
    ("place", "words"),
    [
        (_JOBS.at("ns", "a", "status"), "workronjobs.workron.dev/status ns/a"),
        (_JOBS.at(), "workronjobs.workron.dev"),
        (_PODS.at("ns"), "pods ns"),
    ],
)
def test_place_is_named_as_kubectl_would(place: ResourcePath, words: str) -> None:
    assert str(place) == words
