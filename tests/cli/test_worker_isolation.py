"""The isolation options of `workron worker`."""

import os
from typing import Any

import pytest

from tests.cli.conftest import Call, Write
from tests.runner import spare_uids
from workron.cli import worker
from workron.core import errors
from workron_runner import sandbox

_UNSET: dict[str, Any] = {"is_isolating": False, "uids": None, "processes": None, "slots": 4}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give uids")
def test_commands_have_their_own_uids_when_a_range_is_given(
    call: Call, write: Write, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with spare_uids.traversable_folder() as folder:
        monkeypatch.setenv("TMPDIR", str(folder))
        call("submit", write("hello", command="id -u"), "--store", url)
        given = ("--slots", 2, "--uids", spare_uids.UIDS, "--max-jobs", 1)
        result = call("worker", "--store", url, *given)
        assert result.code == 0, result
    assert (
        spare_uids.UIDS.first
        < int(call("output", "hello", "--store", url).out)
        <= spare_uids.UIDS.last
    )


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"uids": "0-9"}, "--uids: '0-9' is not a range of at least two uids above 0"),
        ({"uids": "all"}, "write it like 100000-100099"),
        ({"uids": "5-8"}, "--uids: 5-8 has 4 uids, but --slots 4 needs 5: one for each command"),
        ({"processes": 5}, "--processes needs --uids"),
    ],
)
def test_isolation_is_refused_when_its_options_conflict(asked: dict[str, Any], words: str) -> None:
    with pytest.raises(errors.InputError, match=words):
        worker.runners_from_options(None, **_UNSET | asked)


def test_isolation_is_refused_when_this_machine_does_not_support_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(_: object) -> None:
        raise sandbox.SandboxError("needs root, and this process has the uid 5")

    monkeypatch.setattr(sandbox, "has_landlock", lambda: False)
    monkeypatch.setattr(sandbox, "check_uid_privileges", refuse)
    with pytest.raises(errors.InputError, match=r"Linux 6\.12 or newer"):
        worker.runners_from_options(None, **_UNSET | {"is_isolating": True})
    with pytest.raises(
        errors.InputError, match="--uids needs root, and this process has the uid 5"
    ):
        worker.runners_from_options(None, **_UNSET | {"uids": "100000-100099"})
