"""An invalid URL of a store is rejected with the valid forms, and no file is created."""

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
    """A folder in which the test must not create a file."""
    yield tmp_path
    assert list(tmp_path.iterdir()) == []


async def _error(call: Any, url: str) -> str:
    with pytest.raises(errors.InputError) as raised:
        await call(url, clock=FakeClock(), rng=random.Random())
    return str(raised.value)


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
async def test_error_lists_the_valid_forms_when_a_url_is_not_that_of_a_store(
    call: Any, url: str, empty: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(empty)
    message = await _error(call, url)
    assert "`memory:`, `sqlite:///path/to/file` or `postgresql://" in message
    assert "secret" not in message


@_either
async def test_error_names_an_invalid_address(call: Any) -> None:
    assert "Invalid IPv6 URL" in await _error(call, "postgresql://[::1/db")


@_either
async def test_error_explains_text_after_memory(call: Any) -> None:
    assert "nothing may follow `memory:`" in await _error(call, "memory:jobs")


@_either
@pytest.mark.parametrize(
    ("rest", "right"), [("a.db?mode=ro", "%3F if it belongs"), ("a%00b", "NUL"), ("a\0b", "NUL")]
)
async def test_invalid_file_name_is_rejected_and_no_file_is_created(
    call: Any, empty: pathlib.Path, rest: str, right: str
) -> None:
    assert right in await _error(call, f"sqlite:///{empty}/{rest}")


async def test_file_name_is_unquoted(tmp_path: pathlib.Path) -> None:
    url = f"sqlite:///{tmp_path}/a%3Fb%20c.db"
    await connect.migrate(url, clock=FakeClock(), rng=random.Random())
    assert (tmp_path / "a?b c.db").exists()
