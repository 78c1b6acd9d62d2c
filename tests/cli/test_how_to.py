"""The commands of the how-to guides about workers."""

import asyncio
import pathlib
import re
import secrets
import subprocess
import sys
from urllib import parse

import asyncpg
import pytest
import yaml

from tests.cli.conftest import Call, Start, Write

_ROOT = pathlib.Path(__file__).parents[2]
_PAGE = (_ROOT / "docs/how-to/workers-without-a-cluster.md").read_text()
_POD = (_ROOT / "docs/how-to/worker-in-a-pod.md").read_text()


def _block(language: str, page: str = _PAGE) -> str:
    found = re.search(rf"```{language}\n(.*?)```", page, re.DOTALL)
    assert found is not None
    return found[1]


def test_workflow_ends_when_the_commands_of_the_guide_are_run(tmp_path: pathlib.Path) -> None:
    (tmp_path / "examples").symlink_to(_ROOT / "examples")
    # `kill %1` needs job control, which only interactive shells have by default.
    program = f'set -em; workron() {{ "{sys.executable}" -m workron "$@"; }}\n{_block("sh")}'
    result = subprocess.run(
        ["/bin/bash", "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
    assert "Succeeded" in result.stdout
    assert '"event":"attempt ended"' in result.stderr


async def test_worker_runs_when_its_role_was_created_as_in_the_guide(
    start: Start,
    write: Write,
    fresh_database: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # All databases of a server share its roles, so no other test uses this name.
    role = f"workron_test_{secrets.token_hex(6)}"
    statements = (
        _block("sql").replace("ROLE worker", f"ROLE {role}").replace("'worker'", f"'{role}'")
    )
    admin = await asyncpg.connect(fresh_database)
    await admin.execute(statements)
    try:
        await asyncio.to_thread(start("submit", write("one"), "--store", fresh_database).wait)
        monkeypatch.setenv("WORKRON_TOKEN", "a-long-random-token")
        parts = parse.urlsplit(fresh_database)
        login = f"{role}:choose-one@{parts.netloc.rpartition('@')[2]}"
        worker = start("worker", "--store", parts._replace(netloc=login).geturl(), "--max-jobs", 1)
        result, _ = await asyncio.to_thread(worker.communicate)
        assert worker.returncode == 0, result
        assert "attempt ended" in result
    finally:
        await admin.execute(f"DROP OWNED BY {role} CASCADE; DROP ROLE {role}")
        await admin.close()


def test_job_is_run_when_the_containers_of_the_pod_start(
    call: Call, write: Write, url: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = re.sub(r"/workron/(code|socket)\b", str(tmp_path), _block("yaml", _POD))
    spec = yaml.safe_load(text)["spec"]
    pack, runner = ([sys.executable, *one["command"][1:]] for one in spec["initContainers"])
    [agent] = spec["containers"]
    for one in agent["env"]:
        if "value" in one:
            monkeypatch.setenv(one["name"], one["value"])
    call("submit", write("hello", command="echo on"), "--store", url)
    subprocess.run(pack, check=True)
    with subprocess.Popen(runner, env={"TMPDIR": str(tmp_path)}) as apart:
        words = [word.replace("0.0.0.0:8080", "127.0.0.1:0") for word in agent["args"]]
        result = call(*words, "--store", url, "--max-jobs", 1)
        assert (result.code, apart.wait()) == (0, 0), result
    assert call("output", "hello", "--store", url).out == "on\n"


def test_containers_of_the_pod_meet_the_restricted_standard() -> None:
    spec = yaml.safe_load(_block("yaml", _POD))["spec"]
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    for one in [*spec["initContainers"], *spec["containers"]]:
        assert one["securityContext"]["allowPrivilegeEscalation"] is False
        assert one["securityContext"]["capabilities"] == {"drop": ["ALL"]}
