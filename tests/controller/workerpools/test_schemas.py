"""What is made of a pool is what an API server knows, field by field."""

import pathlib
from typing import Any

import pytest
import yaml

from tests.controller.workerpools.observed_objects import POOL, spec
from tests.helm import schemas
from workron_controller.workerpools import manifests

_CORPUS = pathlib.Path(__file__).parents[2] / "core" / "manifest" / "corpus" / "good"


def _every_field() -> dict[str, Any]:
    text = (_CORPUS / "pool-every-field.yaml").read_text()
    found: dict[str, Any] = next(iter(yaml.safe_load_all(text)))["spec"]
    return found


@pytest.mark.parametrize("fields", [{}, _every_field()], ids=["no field", "every field"])
@pytest.mark.parametrize("version", ["1.33.0", "1.37.0"])
def test_objects_have_no_field_that_is_not_known(fields: dict[str, Any], version: str) -> None:
    template = manifests.pod_template(POOL, spec(**fields), "ours:1", "memory:")
    made = [manifests.replica_set(POOL, template, 1), manifests.secret(POOL, "memory:", "token")]
    assert [one for body in made for one in schemas.problems(body, version)] == []
