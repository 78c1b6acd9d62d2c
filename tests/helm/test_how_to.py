"""Manifests, values and commands of the how-to pages, as far as no cluster is needed."""

import pathlib
import re
import secrets
from typing import Any
from urllib import parse

import asyncpg
import pytest
import yaml

from tests.helm import chart
from workron.core.model.job import Job
from workron.core.model.workerpool import WorkerPool
from workron.core.model.workflow import Workflow
from workron.core.states import REASONS, State
from workron.store.postgres import schema
from workron_controller.jobs import object_parser, submitter
from workron_controller.workerpools import status

_FOLDER = chart.ROOT / "docs" / "how-to"
_PAGES = [
    _FOLDER / f"{name}.md"
    for name in ("install", "jobs-in-a-cluster", "gitops", "monitoring", "backup")
]
_MODELS: dict[str, Any] = {"Job": Job, "Workflow": Workflow, "WorkerPool": WorkerPool}
_VALUES = set(yaml.safe_load((chart.CHART / "values.yaml").read_text()))


def _blocks(page: pathlib.Path, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", page.read_text(), re.DOTALL)


def _documents(page: pathlib.Path) -> list[Any]:
    return [one for block in _blocks(page, "yaml") for one in yaml.safe_load_all(block)]


def test_manifests_on_the_pages_are_valid() -> None:
    found = [
        one
        for page in _PAGES
        for one in _documents(page)
        if str(one.get("apiVersion")).startswith("workron.dev/")
    ]
    assert {one["kind"] for one in found} == {"Job", "WorkerPool"}
    for one in found:
        _MODELS[one["kind"]].parse(one)


def _reasons(table: int) -> set[str]:
    """Return the reasons that a table on the page about Jobs explains."""
    text = (_FOLDER / "jobs-in-a-cluster.md").read_text()
    tables = re.findall(r"^\| reason of .*\n\|[-|]+\n((?:\|.*\n)+)", text, re.MULTILINE)
    firsts = [row.split("|")[1] for row in tables[table].splitlines()]
    return {word for first in firsts for word in re.findall(r"`(\w+)`", first)} - {"Queued"}


def test_every_reason_of_a_waiting_job_is_explained() -> None:
    refusals = {
        object_parser.INVALID_SPEC,
        object_parser.INVALID_GRAPH,
        submitter.REJECTED,
        "CycleDetected",
    }
    hints = {status.NOT_ENABLED, status.POOL_NOT_FOUND}
    assert _reasons(0) == {*REASONS[State.WAITING], *hints, *refusals}


def test_every_reason_of_a_pool_is_explained() -> None:
    words = {value for name, value in vars(status).items() if name.isupper() and name[0] != "_"}
    reasons = {word for word in words if isinstance(word, str) and re.fullmatch(r"[A-Z]\w+", word)}
    assert len(reasons) > 8
    assert _reasons(1) == reasons - {status.POOL_NOT_FOUND}


def test_values_on_the_pages_are_values_of_the_chart(tmp_path: pathlib.Path) -> None:
    found = [one for page in _PAGES for one in _documents(page) if one.keys() & _VALUES]
    assert len(found) >= 3
    for number, one in enumerate(found):
        path = tmp_path / f"{number}.yaml"
        path.write_text(yaml.safe_dump(one))
        assert chart.render(values=path)


def test_settings_in_commands_are_values_of_the_chart() -> None:
    given = re.findall(r"--set (\S+?)=(\S+?)[\s`]", "".join(page.read_text() for page in _PAGES))
    assert len(given) >= 3
    for name, value in given:
        assert chart.render(f"{name}={value}")


@pytest.mark.parametrize("page", _PAGES, ids=lambda page: page.stem)
def test_links_of_the_pages_exist(page: pathlib.Path) -> None:
    for target, anchor in re.findall(r"\]\(([\w./-]*)(?:#([\w-]+))?\)", page.read_text()):
        path = (page.parent / target).resolve() if target else page
        assert path.exists(), target
        headings = re.findall(r"^#+ (.*)$", path.read_text(), re.MULTILINE)
        slugs = {re.sub(r"[^\w -]", "", one).lower().replace(" ", "-") for one in headings}
        assert not anchor or anchor in slugs, anchor


async def _execute(dsn: str, statements: str) -> None:
    connection = await asyncpg.connect(dsn)
    try:
        await connection.execute(statements)
    finally:
        await connection.close()


async def test_role_prepared_as_the_page_says_can_grant_workers(postgres_dsn: str) -> None:
    suffix = secrets.token_hex(6)
    owner, worker = f"workron_{suffix}", f"worker_{suffix}"
    own = parse.urlsplit(postgres_dsn)._replace(path=f"/{owner}").geturl()
    [done] = _blocks(_FOLDER / "install.md", "sql")
    before, after = re.sub(r"\bworkron\b", owner, done).split(f"\\connect {owner}\n")
    await _execute(postgres_dsn, f"CREATE ROLE {owner} LOGIN PASSWORD 'x'")
    await _execute(postgres_dsn, f"CREATE DATABASE {owner} OWNER {owner}")
    try:
        await _execute(postgres_dsn, before)
        await _execute(own, after)
        netloc = f"{owner}:x@{parse.urlsplit(own).netloc.rpartition('@')[2]}"
        as_owner = parse.urlsplit(own)._replace(netloc=netloc).geturl()
        await schema.migrate(as_owner)
        await _execute(as_owner, f"CREATE ROLE {worker}; SELECT workron.grant_worker('{worker}')")
    finally:
        await _execute(postgres_dsn, f"DROP DATABASE {owner}")
        await _execute(postgres_dsn, f"DROP ROLE {worker}; DROP ROLE {owner}")
