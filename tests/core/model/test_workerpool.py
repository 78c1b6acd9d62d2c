"""WorkerPool: defaults, and invalid fields of pods."""

from datetime import timedelta

import pydantic
import pytest

from workron.core.model.workerpool import WorkerPool, WorkerPoolSpec

_SECRET = {"name": "s", "secret": {"secretName": "keys"}}


def _pool(name: str = "default") -> WorkerPool:
    return WorkerPool.parse({"metadata": {"name": name}, "status": {"replicas": 3}})


def test_pool_has_defaults_for_all_but_its_name() -> None:
    spec = _pool().spec
    assert (spec.image, spec.slots, spec.drain_timeout) == (None, 4, timedelta(minutes=10))
    assert (spec.min_replicas, spec.max_replicas, spec.replicas) == (0, 10, None)
    assert (spec.lease, spec.heartbeat) == (timedelta(seconds=60), timedelta(seconds=2))
    assert spec.automount_service_account_token is False
    assert _pool().status is None


def test_pool_may_have_a_name_of_52_characters() -> None:
    assert _pool("a" * 52).metadata.name == "a" * 52


@pytest.mark.parametrize("name", ["a" * 53, "a.b"])
def test_pool_is_rejected_when_its_name_does_not_fit_a_label(name: str) -> None:
    with pytest.raises(pydantic.ValidationError, match="at most 52 characters"):
        _pool(name)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"minReplicas": 5, "maxReplicas": 4}, "minReplicas 5 is greater than maxReplicas 4"),
        ({"lease": "3s"}, "lease 3s must be at least twice the heartbeat 2s"),
        ({"heartbeat": "99ms"}, "heartbeat 99ms must be at least 100ms"),
        ({"slots": 0}, "slots"),
        ({"image": "two words"}, "an image reference"),
        ({"labels": {"workron.dev/pool": "x"}}, "is reserved"),
        ({"resources": {"limits": {"cpu": 0.5}}}, "write it in quotes"),
        ({"resources": {"limits": {"memory": "1 GB"}}}, "write it as 500m"),
        ({"env": [{"name": "A"}]}, "exactly one of value, valueFrom"),
        ({"env": [{"name": "A", "value": ""}, {"name": "A", "value": ""}]}, "'A' is given 2"),
        ({"envFrom": [{"prefix": "A_"}]}, "exactly one of secretRef, configMapRef"),
        ({"volumes": [{"name": "v"}]}, "exactly one of secret, configMap, emptyDir"),
        ({"volumes": [{"name": "v", "hostPath": {"path": "/"}}]}, "hostPath"),
        ({"volumes": [_SECRET, _SECRET]}, "'s' is given 2"),
        ({"volumeMounts": [{"name": "s", "mountPath": "/s"}]}, "not in volumes"),
        ({"volumeMounts": [{"name": "s", "mountPath": "s"}]}, "begin with '/'"),
        ({"tolerations": [{"operator": "Equal", "value": "x"}]}, "set a key"),
        ({"tolerations": [{"operator": "Exists", "value": "x"}]}, "does not take a value"),
        ({"replicas": -1}, "replicas"),
    ],
)
def test_pool_is_rejected_when_its_fields_contradict_each_other(
    fields: dict[str, object], message: str
) -> None:
    with pytest.raises(pydantic.ValidationError, match=message):
        WorkerPoolSpec.parse(fields)


@pytest.mark.parametrize("quantity", ["500m", "2", 2, "1Gi", "1.5", "1e3", ".5"])
def test_quantity_is_accepted_in_the_forms_of_kubernetes(quantity: object) -> None:
    spec = WorkerPoolSpec.parse({"resources": {"requests": {"cpu": quantity}}})
    assert spec.resources.requests == {"cpu": str(quantity)}
