"""A store's URL: what is none is refused with what would be right, and nothing is made."""

import pathlib
import random
from collections.abc import Iterator
from typing import Any

import pytest

from tests.store.behaviour.databases import FakeClock
from workron.core import errors
from workron.store import connect

_either = pytest.mark.parametrize("call", [connect.connect, connect.migrate])


@pytest.fixture
def empty(tmp_path: pathlib.Path) -> Iterator[pathlib.Path]:
    """A folder in which nothing may be made."""
    yield tmp_path
    assert list(tmp_path.iterdir()) == []


async def _refusal(call: Any, url: str) -> str:
    with pytest.raises(errors.InputError) as refusal:
        await call(url, clock=FakeClock(), rng=random.Random())
    return str(refusal.value)


@_either
@pytest.mark.parametrize(
    "url",
    [
        *("postgresql://me:secret@[::1/db", "postgresql://[::1/db?password=secret"),
        *(
            "mysql://me:secret@host/db",
            "list_jobs.db",
            "",
            "memory:jobs",
            "memory://",
            "sqlite:jobs",
        ),
        *("sqlite:///", "sqlite://", "sqlite://jobs.db", "sqlite:jobs///db"),
    ],
)
async def test_url_of_no_store_is_refused_with_the_forms_there_are(
    call: Any, url: str, empty: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(empty)
    said = await _refusal(call, url)
    assert "`memory:`, `sqlite:///path/to/file` or `postgresql://" in said
    assert "secret" not in said


@_either
async def test_address_that_is_not_closed_is_named(call: Any) -> None:
    assert "Invalid IPv6 URL" in await _refusal(call, "postgresql://[::1/db")


@_either
async def test_rest_behind_memory_is_refused_as_what_it_is(call: Any) -> None:
    assert "nothing may follow `memory:`" in await _refusal(call, "memory:jobs")


@_either
@pytest.mark.parametrize(
    ("rest", "right"), [("a.db?mode=ro", "%3F if it belongs"), ("a%00b", "NUL"), ("a\0b", "NUL")]
)
async def test_file_name_that_can_be_none_is_refused_and_no_file_is_made(
    call: Any, empty: pathlib.Path, rest: str, right: str
) -> None:
    assert right in await _refusal(call, f"sqlite:///{empty}/{rest}")


async def test_file_has_the_name_that_its_url_quotes(tmp_path: pathlib.Path) -> None:
    url = f"sqlite:///{tmp_path}/a%3Fb%20c.db"
    await connect.migrate(url, clock=FakeClock(), rng=random.Random())
    assert (tmp_path / "a?b c.db").exists()
