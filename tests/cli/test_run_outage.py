"""Outages of the store: commands retry, and stop their jobs when it fails for good."""

import asyncio
import pathlib
from collections.abc import Callable, Iterable
from datetime import timedelta
from functools import partial
from typing import Any, NoReturn

import pytest

from tests.cli.conftest import Call, Write
from workron.cli import stores
from workron.core import errors
from workron.retry import RetryBackoff
from workron.scheduling import wait
from workron.store import connect
from workron.store.postgres.store import PostgresStore
from workron.store.sqlite.store import SqliteStore

FailStore = Callable[..., None]


@pytest.fixture
def fail_store(monkeypatch: pytest.MonkeyPatch) -> FailStore:
    """Make calls of the store fail a given number of times, once a file exists."""
    monkeypatch.setattr(wait, "RetryBackoff", lambda *_: RetryBackoff(0.01, 0.01))

    def fail(verbs: Iterable[str], error: Exception, sign: pathlib.Path, times: int) -> None:
        left = dict.fromkeys(verbs, times)
        for verb in left:
            monkeypatch.setattr(SqliteStore, verb, _failing(verb, error, sign, left))

    return fail


def _failing(verb: str, error: Exception, sign: pathlib.Path, left: dict[str, int]) -> Any:
    real = getattr(SqliteStore, verb)

    def is_failing() -> bool:
        left[verb] -= sign.exists()
        return sign.exists() and left[verb] >= 0

    async def call(*arguments: Any, **named: Any) -> Any:
        if is_failing():
            raise error
        return await real(*arguments, **named)

    return call


_UNREACHABLE = errors.StoreUnreachableError("db does not answer")
_FULL = errors.StoreFullError("jobs.db: the disk is full")


def test_run_continues_after_an_outage_and_reports_it_once(
    call: Call, write: Write, url: str, tmp_path: pathlib.Path, fail_store: FailStore
) -> None:
    flow = write(
        "flow",
        f"name: a, command: 'echo > {tmp_path}/on'",
        "name: b, command: echo, dependsOn: [{name: a}]",
    )
    verbs = ["list_jobs", "filter_ended", "get_jobs", "complete", "claim", "elect", "promote"]
    fail_store(verbs, _UNREACHABLE, tmp_path / "on", times=3)
    result = call("run", flow, "--store", url)
    assert (result.code, result.err) == (0, "")
    printed = [line for line in result.out.splitlines() if "the store" in line]
    assert printed[:2] == [
        "the store does not answer; retrying for 1m: db does not answer",
        "the store answers again",
    ]
    assert result.out.count("Succeeded  flow/") == 2


def test_wait_continues_after_an_outage(
    call: Call, write: Write, url: str, tmp_path: pathlib.Path, fail_store: FailStore
) -> None:
    call("run", write("hello"), "--store", url)
    fail_store(["filter_ended", "get_jobs"], _UNREACHABLE, tmp_path, times=3)
    result = call("wait", "hello", "--store", url)
    assert (result.code, result.out) == (0, "job/hello Succeeded\n")
    assert result.err.splitlines()[:2] == [
        "workron: the store does not answer; retrying for 5m: db does not answer",
        "workron: the store answers again",
    ]


@pytest.mark.parametrize("asked", [("wait", "hello"), ("output", "hello", "-f")])
def test_waiting_command_retries_when_the_store_is_unavailable_from_the_start(
    call: Call, write: Write, fresh_database: str, monkeypatch: pytest.MonkeyPatch,
    asked: tuple[str, ...],
) -> None:  # fmt: skip
    call("run", write("hello", command="echo out"), "--store", fresh_database)
    monkeypatch.setattr(wait, "RetryBackoff", lambda *_: RetryBackoff(0.01, 0.01))
    for owner, name in ((connect, "connect"), (PostgresStore, "find_run")):
        monkeypatch.setattr(owner, name, _failing_once(getattr(owner, name)))
    result = call(*asked, "--store", fresh_database)
    assert result.code == 0
    assert result.err.count("the store answers again") == 2


def _failing_once(real: Any) -> Any:
    left = [_UNREACHABLE]

    async def call(*arguments: Any, **named: Any) -> Any:
        if left:
            raise left.pop()
        return await real(*arguments, **named)

    return call


def test_wait_exits_with_3_when_the_outage_exceeds_its_limit(
    call: Call, write: Write, url: str, tmp_path: pathlib.Path, fail_store: FailStore,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    call("run", write("hello"), "--store", url)
    fail_store(["filter_ended"], _UNREACHABLE, tmp_path, times=10**9)
    monkeypatch.setattr(stores, "OUTAGE_LIMIT", timedelta(milliseconds=50))
    result = call("wait", "hello", "--store", url)
    assert (result.code, result.out) == (3, "")
    assert result.err.splitlines()[1:] == ["workron: db does not answer"]


def test_wait_exits_with_3_when_its_timeout_expires_during_an_outage(
    call: Call, write: Write, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    call("submit", write("hello"), "--store", url)

    async def fail_for_long(*_: object) -> NoReturn:
        loop = asyncio.get_running_loop()
        monkeypatch.setattr(loop, "time", partial(float, loop.time() + 7200))
        raise _UNREACHABLE

    monkeypatch.setattr(SqliteStore, "filter_ended", fail_for_long)
    result = call("wait", "hello", "--timeout", "1h", "--store", url)
    assert (result.code, result.out) == (3, "")
    assert result.err.splitlines()[1:] == ["timed out: the store does not answer"]


@pytest.mark.parametrize("verb", ["list_jobs", "promote", "claim"])
def test_run_terminates_its_commands_when_the_store_fails(
    call: Call, write: Write, url: str, tmp_path: pathlib.Path, fail_store: FailStore, verb: str
) -> None:
    command = (
        f"trap 'echo > {tmp_path}/ended; exit 0' TERM; test -e {tmp_path}/on && exit;"
        f" echo > {tmp_path}/on; while :; do sleep 0.05; done"
    )
    job = write("hello", command=command)
    fail_store([verb], _FULL, tmp_path / "on", times=1)
    result = call("run", job, "--store", url)
    assert (result.code, result.err) == (3, "workron: jobs.db: the disk is full\n")
    assert result.out.endswith("not all jobs have run; repeat the same command to resume\n")
    assert (tmp_path / "ended").exists()
    assert "State      Queued" in call("describe", "hello", "--store", url).out
    assert call("run", job, "--store", url).code == 0
