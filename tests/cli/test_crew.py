"""The workers of a run."""

import contextlib
import pathlib
import uuid

import pytest

from workron.cli import system
from workron.cli.crew import Crew, executor_of, tokens_of
from workron.store import connect
from workron.store.protocol import Registration


@pytest.mark.parametrize(
    ("url", "lease"), [("memory:", 365 * 24 * 3600.0), ("sqlite:///{}/store.db", 60.0)]
)
async def test_lease_suits_who_else_could_hold_what_is_claimed(
    tmp_path: pathlib.Path, url: str, lease: float
) -> None:
    store = await connect.connect(url.format(tmp_path), clock=system.CLOCK, rng=system.RNG)
    with contextlib.closing(Crew(store, executor_of(uuid.uuid4()), slots=1)) as crew:
        crew.hire(await tokens_of(store, [("default", "default")]))
        token = await store.ensure_pool("default", "default")
        session = await store.register(Registration(token, "one", uuid.uuid4(), slots=1))
    await store.close()
    assert session.lease_seconds == lease
