"""The executors, with real processes: what holds for one holds for the other."""

import asyncio
import json
import pathlib
import re
import uuid
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from tests.worker.ear import Ear
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


def _ignore(data: bytes, done: Acknowledge) -> None:
    done(len(data))


def _was_below_and_is_gone(folder: pathlib.Path, root: pathlib.Path) -> None:
    assert folder.is_relative_to(root)
    assert not folder.exists()


async def test_command_ends_well_and_leaves_output_and_result(
    executor: RunnerExecutor, make: Make
) -> None:
    task = make("echo out; echo err >&2; printf '{\"rows\": 3}' > $WORKRON_RESULT")
    ended = await run_task(executor, task, _ignore)
    seconds = ended.start_seconds
    assert ended == CommandEnd(
        exit_code=0, output=b"out\nerr\n", result={"rows": 3}, start_seconds=seconds
    )


async def test_command_reads_inputs_as_json(executor: RunnerExecutor, make: Make) -> None:
    inputs = {"extract": [1, None, {"ü": "x"}]}
    ended = await run_task(executor, make("cat $WORKRON_INPUTS", inputs=inputs), _ignore)
    assert json.loads(ended.output) == inputs


async def test_argv_is_passed_word_by_word_without_a_shell(
    executor: RunnerExecutor, make: Make
) -> None:
    ended = await run_task(executor, make(["printf", "%s|", "$HOME", "a b", "*"]), _ignore)
    assert ended.output == b"$HOME|a b|*|"


async def test_command_sees_a_scrubbed_environment(
    executor: RunnerExecutor, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET", "canary")
    ended = await run_task(
        executor, make("env", environment={"MINE": "1"}, output_limit_bytes=9999), _ignore
    )
    names = {line.partition("=")[0] for line in ended.output.decode().splitlines()}
    ours = {"WORKRON_INPUTS", "WORKRON_RESULT", "WORKRON_BOOT"}
    assert names - {"PWD", "OLDPWD", "SHLVL", "_"} == ours | {
        "PATH", "LANG", "HOME", "TMPDIR", "MINE",
    }  # fmt: skip


async def test_command_runs_in_a_fresh_folder_that_is_removed(
    executor: RunnerExecutor, make: Make, tmp_path: pathlib.Path
) -> None:
    same = 'test "$PWD" = "$HOME" -a "$PWD" = "$TMPDIR"'
    command = f"{same} && ls -A && pwd && mkdir d && chmod 0 d ."
    ended = await run_task(executor, make(command), _ignore)
    _was_below_and_is_gone(pathlib.Path(ended.output.decode().strip()), tmp_path)


async def test_command_runs_in_its_workdir_when_it_has_one(
    executor: RunnerExecutor, make: Make, tmp_path: pathlib.Path
) -> None:
    ended = await run_task(executor, make("pwd; cd ~; pwd", workdir=str(tmp_path)), _ignore)
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
async def test_command_that_fails_is_told_by_reason_and_exit_code(
    executor: RunnerExecutor, make: Make, command: Any, reason: Reason, exit_code: int | None
) -> None:
    ended = await run_task(executor, make(command), _ignore)
    assert (ended.reason, ended.exit_code) == (reason, exit_code)
    assert ended.message


@pytest.mark.parametrize("workdir", ["/no/such/folder", "no-such-folder", "/etc/passwd"])
async def test_workdir_that_does_not_exist_is_named(
    executor: RunnerExecutor, make: Make, workdir: str
) -> None:
    ended = await run_task(executor, make("true", workdir=workdir), _ignore)
    assert ended.reason is Reason.COMMAND_NOT_FOUND
    assert re.search(rf"could not be started: its workdir '[^']*{workdir}': ", ended.message or "")


async def test_command_that_is_too_long_for_the_system_fails_in_words(
    executor: RunnerExecutor, make: Make
) -> None:
    ended = await run_task(executor, make(["echo", "x" * 200_000]), _ignore)
    assert ended.reason is Reason.COMMAND_NOT_FOUND
    assert "Argument list too long" in (ended.message or "")


async def test_start_that_this_machine_refuses_is_no_fault_of_the_job(
    executor: RunnerExecutor, make: Make, boot: uuid.UUID
) -> None:
    workspace.boot_folder(boot).rmdir()
    with pytest.raises(StartError, match="cannot create a folder"):
        await run_task(executor, make("true"), _ignore)


async def test_output_is_bounded_and_still_handed_on_whole(
    executor: RunnerExecutor, make: Make
) -> None:
    seen = bytearray()

    def hear(chunk: bytes, done: Acknowledge) -> None:
        seen.extend(chunk)
        done(len(chunk))

    ended = await run_task(executor, make("yes | head -c 3000000; printf end"), hear)
    assert len(seen) == 3_000_003
    assert len(ended.output) == 1000
    assert ended.output.endswith(b"y\nend")


class Slow:
    """Hears all, and deals with nothing until it is told to."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._owed: list[tuple[Acknowledge, int]] = []
        self._is_free = False
        self.is_full = asyncio.Event()
        self.heard = 0

    def __call__(self, data: bytes, done: Acknowledge) -> None:
        self.heard += len(data)
        if self._is_free:
            done(len(data))
            return
        self._owed.append((done, len(data)))
        if self.heard >= WINDOW_BYTES:
            self._loop.call_soon_threadsafe(self.is_full.set)

    def deal(self) -> None:
        self._is_free = True
        for done, count in self._owed:
            done(count)


async def test_command_waits_until_what_it_wrote_was_dealt_with(
    executor: RunnerExecutor, make: Make, tmp_path: pathlib.Path
) -> None:
    ear, over = Slow(), tmp_path / "over"
    command = f"head -c 10000000 /dev/zero; touch {over}"
    run = asyncio.ensure_future(run_task(executor, make(command), ear))
    await ear.is_full.wait()
    # Another command is through from end to end meanwhile.
    await run_task(executor, make("head -c 10000000 /dev/zero"), _ignore)
    assert WINDOW_BYTES <= ear.heard < WINDOW_BYTES + 2**16
    assert not over.exists()
    ear.deal()
    assert (await run).exit_code == 0
    assert ear.heard == 10_000_000


async def test_command_that_waits_can_be_killed_and_ends(
    executor: RunnerExecutor, make: Make
) -> None:
    ear, task = Slow(), make("exec head -c 10000000 /dev/zero")
    run = asyncio.ensure_future(run_task(executor, task, ear))
    await ear.is_full.wait()
    executor.kill(task.claim)
    assert (await run).is_killed
    assert ear.heard < WINDOW_BYTES + 2**20 + 2**17
    ear.deal()


async def test_what_escaped_floods_nobody_after_the_end_of_its_command(
    executor: RunnerExecutor, make: Make
) -> None:
    ear, task = Slow(), make("setsid yes & exec sleep 1000")
    run = asyncio.ensure_future(run_task(executor, task, ear))
    await ear.is_full.wait()
    executor.kill(task.claim)
    assert (await run).is_killed
    assert ear.heard < WINDOW_BYTES + 2**20 + 2**17
    ear.deal()


async def test_command_that_nobody_hears_is_run_to_its_end(
    executor: RunnerExecutor, make: Make
) -> None:
    ended = await run_task(executor, make("head -c 10000000 /dev/zero; printf end"), None)
    assert ended.exit_code == 0
    assert ended.output.endswith(b"\0end")


async def test_output_is_kept_whatever_bytes_it_has(executor: RunnerExecutor, make: Make) -> None:
    ended = await run_task(executor, make(r"printf '\000\377\033[31m\r'"), _ignore)
    assert ended.output == b"\x00\xff\x1b[31m\r"


async def test_command_that_closes_its_output_is_waited_for(
    executor: RunnerExecutor, make: Make
) -> None:
    task = make("exec >&- 2>&-; printf 1 > $WORKRON_RESULT; exit 5")
    assert (await run_task(executor, task, _ignore)).exit_code == 5


async def test_child_that_holds_the_output_is_dead_when_its_command_ends(
    executor: RunnerExecutor, make: Make, lives: Callable[[int], bool]
) -> None:
    ended = await run_task(executor, make("sleep 1000 & echo $!"), _ignore)
    assert not lives(int(ended.output))


async def test_child_that_left_the_group_neither_hangs_the_job_nor_outlives_the_executor(
    executor: RunnerExecutor, make: Make, tmp_path: pathlib.Path, lives: Callable[[int], bool]
) -> None:
    pid = tmp_path / "pid"
    leave = f"setsid sh -c 'echo $$ > {pid}.new; mv {pid}.new {pid}; exec sleep 1000' &"
    command = f"{leave} while ! test -e {pid}; do :; done; echo done"
    assert (await run_task(executor, make(command), _ignore)).output == b"done\n"
    executor.close()
    assert not lives(int(pid.read_text()))


async def test_command_is_ended_when_its_timeout_has_passed(
    executor: RunnerExecutor, make: Make
) -> None:
    task = make("echo begun; exec sleep 1000", timeout=timedelta(seconds=1))
    ended = await run_task(executor, task, _ignore)
    assert ended.reason is Reason.TIMEOUT
    assert ended.message == "the command ran longer than 1 s"
    assert ended.output == b"begun\n"


async def test_command_that_ignores_the_polite_signal_is_killed(
    executor: RunnerExecutor, make: Make
) -> None:
    task, ear = make("trap '' TERM; echo on; while :; do sleep 1000; done"), Ear()
    run = asyncio.ensure_future(run_task(executor, task, ear))
    await ear.wait()
    executor.kill(task.claim)
    assert (await run).is_killed


async def test_command_may_clean_up_within_the_grace_when_it_is_killed(
    executor: RunnerExecutor, make: Make
) -> None:
    vars(executor)["_grace"] = 60.0
    task, ear = make("trap 'echo bye; exit' TERM; echo on; sleep 1000 & wait"), Ear()
    run = asyncio.ensure_future(run_task(executor, task, ear))
    await ear.wait()
    executor.kill(task.claim)
    assert (await run).is_killed
    assert ear.heard == b"on\nbye\n"


async def test_kill_of_an_attempt_that_is_over_does_nothing(
    executor: RunnerExecutor, make: Make
) -> None:
    task = make("true")
    await run_task(executor, task, _ignore)
    executor.kill(task.claim)


async def test_command_dies_with_its_run_when_that_is_cancelled(
    executor: RunnerExecutor, make: Make, lives: Callable[[int], bool]
) -> None:
    task, ear = make("echo $$; exec sleep 1000"), Ear()
    run = asyncio.ensure_future(run_task(executor, task, ear))
    await ear.wait()
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    executor.close()
    assert not lives(int(ear.heard))


async def test_many_commands_end_each_with_its_own_output(
    executor: RunnerExecutor, make: Make
) -> None:
    tasks = [make(f"echo {number}") for number in range(50)]
    ends = await asyncio.gather(*(run_task(executor, task, _ignore) for task in tasks))
    assert [int(ended.output) for ended in ends] == list(range(50))


async def test_closing_ends_what_was_given_up_without_waiting_for_it(
    executor: RunnerExecutor, make: Make, lives: Callable[[int], bool]
) -> None:
    ear = Ear()
    run = asyncio.ensure_future(run_task(executor, make("echo $$; exec sleep 1000"), ear))
    await ear.wait()
    executor.close()
    assert not lives(int(ear.heard))
    await run
