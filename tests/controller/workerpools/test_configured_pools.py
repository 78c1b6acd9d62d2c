"""Files of pools: what is right in them counts, whatever stands beside it."""

import pathlib

import pytest
from structlog.testing import capture_logs

from workron_controller.workerpools import configured_pools
from workron_controller.workerpools.manifests import name_of


@pytest.fixture
def file(tmp_path: pathlib.Path) -> pathlib.Path:
    return tmp_path / "pools.yaml"


def test_pools_are_read(file: pathlib.Path) -> None:
    file.write_text("- {namespace: lab, name: gpu, spec: {slots: 2}}\n- {name: plain}\n")
    one, other = configured_pools.configured_pools(file)
    assert (name_of(one), one["spec"]) == (("lab", "gpu"), {"slots": 2})
    assert (name_of(other), other["spec"]) == (("default", "plain"), {})
    assert one["kind"] == "WorkerPool"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("- nonsense", "fields"),
        ("- {name: bad, slots: 4}", "fields"),
        ("- {name: bad, spec: {slotz: 4}}", "did you mean slots"),
        ("- {name: Bad}", "Bad"),
        ("- {name: [], namespace: {}}", "metadata"),
    ],
)
def test_slip_in_one_pool_stops_no_other(file: pathlib.Path, text: str, says: str) -> None:
    file.write_text(f"{text}\n- {{name: good}}\n")
    with capture_logs() as logs:
        assert [name_of(one) for one in configured_pools.configured_pools(file)] == [
            ("default", "good")
        ]
    assert says in str(logs)


@pytest.mark.parametrize("text", ["{name: no-list}", "- [", "\0"])
def test_file_that_is_no_list_is_told_of(file: pathlib.Path, text: str) -> None:
    file.write_text(text)
    with capture_logs() as logs:
        assert configured_pools.configured_pools(file) == []
    assert str(file) in str(logs)


def test_file_that_is_missing_or_empty_holds_nothing(file: pathlib.Path) -> None:
    assert configured_pools.configured_pools(file) == configured_pools.configured_pools(None) == []
    file.write_text("")
    assert configured_pools.configured_pools(file) == []


def test_slip_is_told_once_for_as_long_as_it_is_there(file: pathlib.Path) -> None:
    file.write_text("- {name: bad, slots: 4}")
    with capture_logs() as logs:
        configured_pools.configured_pools(file)
        configured_pools.configured_pools(file)
        file.write_text("- {name: worse, slots: 4}")
        configured_pools.configured_pools(file)
    assert len(logs) == 2


def test_default_pool_is_made_from_its_template(file: pathlib.Path) -> None:
    file.write_text("slots: 8\nmaxReplicas: 3\n")
    found = configured_pools.default_pool(file, "lab")
    assert found is not None
    assert name_of(found) == ("lab", "default")
    assert found["spec"] == {"slots": 8, "maxReplicas": 3}
    assert configured_pools.default_pool(None, "lab") is None


def test_template_may_leave_everything_to_us(file: pathlib.Path) -> None:
    file.write_text("{}\n")
    found = configured_pools.default_pool(file, "lab")
    assert found is not None
    assert found["spec"] == {}


def test_template_that_is_wrong_makes_no_pool(file: pathlib.Path) -> None:
    file.write_text("slots: many\n")
    with capture_logs() as logs:
        assert configured_pools.default_pool(file, "lab") is None
    assert "spec.slots" in str(logs)


def test_file_that_is_not_there_is_told_of_once_and_read_when_it_is(file: pathlib.Path) -> None:
    with capture_logs() as logs:
        for _ in range(3):
            assert configured_pools.configured_pools(file) == []
            assert configured_pools.default_pool(file, "lab") is None
    assert [line["error"] for line in logs] == 2 * ["No such file or directory"]
    file.write_text("- {name: plain}\n")
    assert len(configured_pools.configured_pools(file)) == 1
