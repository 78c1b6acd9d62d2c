"""The executor with a real runner: environment, output, results and ends of commands."""

import asyncio
import json
import pathlib
import re
import uuid
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from tests.worker.output_collector import OutputCollector, discard
from workron.core.states import Reason
from workron_runner import workspace
from workron_worker.executor import (
    WINDOW_BYTES,
    Acknowledge,
    CommandEnd,
    CommandTask,
    StartError,
)
from workron_worker.runner_client import RunnerExecutor, run_task

Make = Callable[..., CommandTask]


async def test_end_has_output_and_result_when_a_command_succeeds(
    executor: RunnerExecutor, make: Make
) -> None:
    task = make("echo out; echo err >&2; printf '{\"rows\": 3}' > $WORKRON_RESULT")
    ended = await run_task(executor, task, discard)
    seconds = ended.start_seconds
    assert ended == CommandEnd(
        exit_code=0, output=b"out\nerr\n", result={"rows": 3}, start_seconds=seconds
    )


async def test_command_reads_inputs_as_json(executor: RunnerExecutor, make: Make) -> None:
    inputs = {"extract": [1, None, {"ü": "x"}]}
    ended = await run_task(executor, make("cat $WORKRON_INPUTS", inputs=inputs), discard)
    assert json.loads(ended.output) == inputs


async def test_argv_is_executed_without_a_shell(executor: RunnerExecutor, make: Make) -> None:
    ended = await run_task(executor, make(["printf", "%s|", "$HOME", "a b", "*"]), discard)
    assert ended.output == b"$HOME|a b|*|"


async def test_command_does_not_inherit_the_environment_of_the_worker(
    executor: RunnerExecutor, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET", "canary")
    ended = await run_task(
        executor, make("env", environment={"MINE": "1"}, output_limit_bytes=9999), discard
    )
    names = {line.partition("=")[0] for line in ended.output.decode().splitlines()}
    ours = {"WORKRON_INPUTS", "WORKRON_RESULT", "WORKRON_BOOT"}
    assert names - {"PWD", "OLDPWD", "SHLVL", "_"} == ours | {
        "PATH", "LANG", "HOME", "TMPDIR", "MINE",
    }  # fmt: skip


async def test_command_runs_in_an_empty_folder_that_is_removed(
    executor: RunnerExecutor, make: Make, tmp_path: pathlib.Path
) -> None:
    same = 'test "$PWD" = "$HOME" -a "$PWD" = "$TMPDIR"'
    command = f"{same} && ls -A && pwd && mkdir d && chmod 0 d ."
    ended = await run_task(executor, make(command), discard)
    folder = pathlib.Path(ended.output.decode().strip())
    assert await asyncio.to_thread(folder.exists) is False
    assert folder.is_relative_to(tmp_path)


async def test_command_runs_in_its_workdir_when_it_has_one(
    executor: RunnerExecutor, make: Make, tmp_path: pathlib.Path
) -> None:
    ended = await run_task(executor, make("pwd; cd ~; pwd", workdir=str(tmp_path)), discard)
    workdir, home = ended.output.decode().split()
    assert workdir == str(tmp_path)
    assert home != workdir


@pytest.mark.parametrize(
    ("command", "reason", "exit_code"),
    [
        ("exit 3", Reason.EXIT_CODE, 3),
        ("exit 126", Reason.EXIT_CODE, 126),
        ("kill -9 $$", Reason.SIGNAL, 137),
        ("no-such-program", Reason.COMMAND_NOT_FOUND, 127),
        (["no-such-program"], Reason.COMMAND_NOT_FOUND, None),
        (["/etc/passwd"], Reason.COMMAND_NOT_FOUND, None),
        (["sh", "-c", "exit 127"], Reason.EXIT_CODE, 127),
        ("echo '[' > $WORKRON_RESULT", Reason.RESULT_REFUSED, 0),
        ("echo '[' > $WORKRON_RESULT; exit 2", Reason.EXIT_CODE, 2),
    ],
)
async def test_end_has_reason_and_exit_code_when_a_command_fails(
    executor: RunnerExecutor, make: Make, command: Any, reason: Reason, exit_code: int | None
) -> None:
    ended = await run_task(executor, make(command), discard)
    assert (ended.reason, ended.exit_code) == (reason, exit_code)
    assert ended.message


@pytest.mark.parametrize("workdir", ["/no/such/folder", "no-such-folder", "/etc/passwd"])
async def test_message_names_the_workdir_when_it_does_not_exist(
    executor: RunnerExecutor, make: Make, workdir: str
) -> None:
    ended = await run_task(executor, make("true", workdir=workdir), discard)
    assert ended.reason is Reason.COMMAND_NOT_FOUND
    named = rf"could not be started: its folder, workdir '[^']*{workdir}': .*; create it"
    assert re.search(named, ended.message or "")


async def test_message_explains_when_the_arguments_are_too_long(
    executor: RunnerExecutor, make: Make
) -> None:
    ended = await run_task(executor, make(["echo", "x" * 200_000]), discard)
    assert ended.reason is Reason.COMMAND_NOT_FOUND
    assert "Argument list too long" in (ended.message or "")


async def test_start_error_is_raised_when_the_machine_cannot_start_commands(
    executor: RunnerExecutor, make: Make, boot: uuid.UUID
) -> None:
    workspace.boot_folder(boot).rmdir()
    with pytest.raises(StartError, match="cannot create a folder"):
        await run_task(executor, make("true"), discard)


async def test_captured_output_is_bounded_when_the_listener_gets_all(
    executor: RunnerExecutor, make: Make
) -> None:
    seen = bytearray()

    def listener(data: bytes, acknowledge: Acknowledge) -> None:
        seen.extend(data)
        acknowledge(len(data))

    ended = await run_task(executor, make("yes | head -c 3000000; printf end"), listener)
    assert len(seen) == 3_000_003
    assert len(ended.output) == 1000
    assert ended.output.endswith(b"y\nend")


class SlowListener:
    """Receives output, and acknowledges nothing until the test lets it."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._pending: list[tuple[Acknowledge, int]] = []
        self._is_acknowledging = False
        self.is_full = asyncio.Event()
        self.received = 0

    def __call__(self, data: bytes, acknowledge: Acknowledge) -> None:
        self.received += len(data)
        if self._is_acknowledging:
            acknowledge(len(data))
            return
        self._pending.append((acknowledge, len(data)))
        if self.received >= WINDOW_BYTES:
            self._loop.call_soon_threadsafe(self.is_full.set)

    def acknowledge_all(self) -> None:
        self._is_acknowledging = True
        for acknowledge, count in self._pending:
            acknowledge(count)


async def test_command_blocks_until_its_output_is_acknowledged(
    executor: RunnerExecutor, make: Make, tmp_path: pathlib.Path
) -> None:
    listener, done = SlowListener(), tmp_path / "done"
    command = f"head -c 10000000 /dev/zero; touch {done}"
    run = asyncio.ensure_future(run_task(executor, make(command), listener))
    await listener.is_full.wait()
    # Another command is not blocked meanwhile.
    await run_task(executor, make("head -c 10000000 /dev/zero"), discard)
    assert WINDOW_BYTES <= listener.received < WINDOW_BYTES + 2**16
    assert not done.exists()
    listener.acknowledge_all()
    assert (await run).exit_code == 0
    assert listener.received == 10_000_000


async def test_command_can_be_killed_when_it_is_blocked_on_its_output(
    executor: RunnerExecutor, make: Make
) -> None:
    listener, task = SlowListener(), make("exec head -c 10000000 /dev/zero")
    run = asyncio.ensure_future(run_task(executor, task, listener))
    await listener.is_full.wait()
    executor.kill(task.claim)
    assert (await run).is_killed
    assert listener.received < WINDOW_BYTES + 2**20 + 2**17
    listener.acknowledge_all()


async def test_escaped_process_sends_no_more_output_when_its_command_has_ended(
    executor: RunnerExecutor, make: Make
) -> None:
    listener, task = SlowListener(), make("setsid yes & exec sleep 1000")
    run = asyncio.ensure_future(run_task(executor, task, listener))
    await listener.is_full.wait()
    executor.kill(task.claim)
    assert (await run).is_killed
    assert listener.received < WINDOW_BYTES + 2**20 + 2**17
    listener.acknowledge_all()


async def test_command_never_blocks_when_it_has_no_listener(
    executor: RunnerExecutor, make: Make
) -> None:
    ended = await run_task(executor, make("head -c 10000000 /dev/zero; printf end"), None)
    assert ended.exit_code == 0
    assert ended.output.endswith(b"\0end")


async def test_output_may_have_any_bytes(executor: RunnerExecutor, make: Make) -> None:
    ended = await run_task(executor, make(r"printf '\000\377\033[31m\r'"), discard)
    assert ended.output == b"\x00\xff\x1b[31m\r"


async def test_end_waits_for_the_exit_when_a_command_closes_its_output(
    executor: RunnerExecutor, make: Make
) -> None:
    task = make("exec >&- 2>&-; printf 1 > $WORKRON_RESULT; exit 5")
    assert (await run_task(executor, task, discard)).exit_code == 5


async def test_child_process_is_dead_when_its_command_has_ended(
    executor: RunnerExecutor, make: Make, lives: Callable[[int], bool]
) -> None:
    ended = await run_task(executor, make("sleep 1000 & echo $!"), discard)
    assert not lives(int(ended.output))


async def test_escaped_child_neither_blocks_the_job_nor_outlives_the_executor(
    executor: RunnerExecutor, make: Make, tmp_path: pathlib.Path, lives: Callable[[int], bool]
) -> None:
    pid = tmp_path / "pid"
    leave = f"setsid sh -c 'echo $$ > {pid}.new; mv {pid}.new {pid}; exec sleep 1000' &"
    command = f"{leave} while ! test -e {pid}; do :; done; echo done"
    assert (await run_task(executor, make(command), discard)).output == b"done\n"
    executor.close()
    assert not lives(int(pid.read_text()))


async def test_command_is_killed_when_its_timeout_has_passed(
    executor: RunnerExecutor, make: Make
) -> None:
    task = make("echo begun; exec sleep 1000", timeout=timedelta(seconds=1))
    ended = await run_task(executor, task, discard)
    assert ended.reason is Reason.TIMEOUT
    assert ended.message == "the command ran longer than 1 s"
    assert ended.output == b"begun\n"


async def test_command_is_killed_when_it_ignores_sigterm(
    executor: RunnerExecutor, make: Make
) -> None:
    task, collector = make("trap '' TERM; echo on; while :; do sleep 1000; done"), OutputCollector()
    run = asyncio.ensure_future(run_task(executor, task, collector))
    await collector.wait()
    executor.kill(task.claim)
    assert (await run).is_killed


async def test_command_may_clean_up_within_the_grace_when_it_is_killed(
    executor: RunnerExecutor, make: Make
) -> None:
    executor._grace = 60.0
    task = make("trap 'echo bye; exit' TERM; echo on; sleep 1000 & wait")
    collector = OutputCollector()
    run = asyncio.ensure_future(run_task(executor, task, collector))
    await collector.wait()
    executor.kill(task.claim)
    assert (await run).is_killed
    assert collector.received == b"on\nbye\n"


async def test_kill_does_nothing_when_the_attempt_has_ended(
    executor: RunnerExecutor, make: Make
) -> None:
    task = make("true")
    await run_task(executor, task, discard)
    executor.kill(task.claim)


async def test_command_is_killed_when_its_task_is_cancelled(
    executor: RunnerExecutor, make: Make, lives: Callable[[int], bool]
) -> None:
    task, collector = make("echo $$; exec sleep 1000"), OutputCollector()
    run = asyncio.ensure_future(run_task(executor, task, collector))
    await collector.wait()
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    executor.close()
    assert not lives(int(collector.received))


async def test_each_command_has_its_own_output_when_many_run(
    executor: RunnerExecutor, make: Make
) -> None:
    tasks = [make(f"echo {number}") for number in range(50)]
    ends = await asyncio.gather(*(run_task(executor, task, discard) for task in tasks))
    assert [int(ended.output) for ended in ends] == list(range(50))


async def test_close_ends_running_commands(
    executor: RunnerExecutor, make: Make, lives: Callable[[int], bool]
) -> None:
    collector = OutputCollector()
    run = asyncio.ensure_future(run_task(executor, make("echo $$; exec sleep 1000"), collector))
    await collector.wait()
    executor.close()
    assert not lives(int(collector.received))
    await run
