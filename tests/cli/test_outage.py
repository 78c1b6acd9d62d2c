"""What a run does while its store is away, and what it leaves when that is for good."""

import pathlib
from collections.abc import Callable, Iterable
from typing import Any

import pytest

import workron
from tests.cli.conftest import Call
from workron.cli import log
from workron.core import errors
from workron.scheduling import outage
from workron.store.sqlite.store import SqliteStore

Write = Callable[..., pathlib.Path]
Shut = Callable[..., None]


@pytest.fixture
def shut(monkeypatch: pytest.MonkeyPatch) -> Shut:
    """Let verbs of the store fail, as often as is said, from when a file is there."""
    monkeypatch.setattr(outage, "_PAUSE_SECONDS", 0.01)

    def shut(verbs: Iterable[str], error: Exception, sign: pathlib.Path, times: int) -> None:
        left = dict.fromkeys(verbs, times)
        for verb in left:
            monkeypatch.setattr(SqliteStore, verb, _failing(verb, error, sign, left))

    return shut


def _failing(verb: str, error: Exception, sign: pathlib.Path, left: dict[str, int]) -> Any:
    real = getattr(SqliteStore, verb)

    def is_shut() -> bool:
        left[verb] -= sign.exists()
        return sign.exists() and left[verb] >= 0

    async def call(*arguments: Any, **named: Any) -> Any:
        if is_shut():
            raise error
        return await real(*arguments, **named)

    return call


_AWAY = errors.StoreUnreachableError("db does not answer")
_FULL = errors.StoreFullError("jobs.db: there is no space left")


def test_run_goes_on_after_an_outage_and_speaks_of_it_calmly(
    call: Call, write: Write, url: str, tmp_path: pathlib.Path, shut: Shut
) -> None:
    flow = write(
        "flow",
        f"name: a, command: 'echo > {tmp_path}/on'",
        "name: b, command: echo, dependsOn: [{name: a}]",
    )
    verbs = ["jobs", "ended", "standing", "complete", "claim", "elect", "promote"]
    shut(verbs, _AWAY, tmp_path / "on", times=3)
    said = call("run", flow, "--store", url)
    assert (said.code, said.err) == (0, "")
    told = [line for line in said.out.splitlines() if "the store" in line]
    assert told[:2] == [
        "the store does not answer; it is asked again for a minute",
        "the store answers again",
    ]
    assert said.out.count("Succeeded  flow/") == 2


def test_wait_goes_on_after_an_outage(
    call: Call, write: Write, url: str, tmp_path: pathlib.Path, shut: Shut
) -> None:
    call("run", write("hello"), "--store", url)
    shut(["ended", "standing"], _AWAY, tmp_path, times=3)
    said = call("wait", "hello", "--store", url)
    assert (said.code, said.out) == (0, "job/hello Succeeded\n")
    assert said.err.splitlines()[0] == "the store does not answer; it is asked again for a minute"


@pytest.mark.parametrize("verb", ["jobs", "promote", "claim"])
def test_run_that_is_ended_by_its_store_ends_its_commands_softly_and_says_how_to_go_on(
    call: Call, write: Write, url: str, tmp_path: pathlib.Path, shut: Shut, verb: str
) -> None:
    command = (
        f"trap 'echo > {tmp_path}/ended; exit 0' TERM; test -e {tmp_path}/on && exit;"
        f" echo > {tmp_path}/on; while :; do sleep 0.05; done"
    )
    job = write("hello", command=command)
    shut([verb], _FULL, tmp_path / "on", times=1)
    said = call("run", job, "--store", url)
    assert (said.code, said.err) == (1, "workron: jobs.db: there is no space left\n")
    assert said.out.endswith("not all has run; the same command goes on from here\n")
    assert (tmp_path / "ended").exists()
    assert "State      Queued" in call("describe", "hello", "--store", url).out
    assert call("run", job, "--store", url).code == 0


def test_what_is_left_out_during_an_outage_is_what_the_parts_below_log() -> None:
    package = pathlib.Path(workron.__file__).parent
    worker = package.parent / "worker_image" / "workron_worker"
    texts = [path.read_text() for path in [*worker.glob("*.py"), *package.rglob("maintain.py")]]
    assert {event for event in log._OF_AN_OUTAGE
            if not any(f'_log.warning("{event}"' in text for text in texts)} == set()  # fmt: skip
