"""Commands in a runner: how they start, what they leave, and how their end is told."""

import pathlib
import resource
import select
import signal
from collections.abc import Callable

import pytest

from tests.runner.mate import COMMAND, Mate
from workron_runner import protocol, spawn

_DAEMON = (
    "env -i setsid setsid sh -c 'cd /; echo $$ > {pid}.new; mv {pid}.new {pid}; exec sleep 1000'"
)
"""Leaves its group, its session, its environment and its folder, twice over."""


def _leave(pid: pathlib.Path, *, pipe: str) -> str:
    return f"{_DAEMON.format(pid=pid)} {pipe} & while ! test -e {pid}; do :; done"


def test_end_tells_code_time_and_memory(mate: Mate) -> None:
    ended = mate.ended(mate.run("exit 3"))
    assert (ended.cause, ended.exit_code, ended.signal) == ("exit", 3, None)
    assert 0 < ended.seconds < 60
    assert 0 < ended.start_seconds < 60
    assert ended.result_error is None


def test_end_by_a_signal_is_told_apart_from_an_exit_code(mate: Mate) -> None:
    ended = mate.ended(mate.run("kill -9 $$"))
    assert (ended.exit_code, ended.signal) == (None, signal.SIGKILL)


def test_end_is_told_though_the_runner_was_started_by_who_buries_no_children(
    tmp_path: pathlib.Path,
) -> None:
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        mate = Mate(tmp_path)
    finally:
        signal.signal(signal.SIGCHLD, before)
    mate.greet()
    assert mate.ended(mate.run("exit 3")).exit_code == 3
    mate.close()


def test_peak_of_memory_is_that_of_the_largest_process(mate: Mate) -> None:
    small = mate.ended(mate.run("true")).peak_bytes
    large = mate.ended(mate.run("head -c 60000000 /dev/zero | tail -c 60000000 >/dev/null"))
    assert 50_000_000 < large.peak_bytes < 200_000_000
    assert small < 50_000_000


def test_result_is_handed_over_as_bytes_without_a_judgement(mate: Mate) -> None:
    claim = mate.run(r"printf '\377[' > $WORKRON_RESULT")
    assert mate.ended(claim).result_error is None
    assert mate.results[claim] == b"\xff["


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("ln -s /etc/passwd $WORKRON_RESULT", "cannot be read"),
        ("mkfifo $WORKRON_RESULT", "not a regular file"),
        ("head -c 16385 /dev/zero > $WORKRON_RESULT", "larger than 16384 bytes"),
    ],
)
def test_result_that_is_a_trap_is_named_and_not_taken(mate: Mate, command: str, words: str) -> None:
    claim = mate.run(command)
    assert words in (mate.ended(claim).result_error or "")
    assert claim not in mate.results


def test_start_that_fails_is_told_by_whose_fault_it_is(mate: Mate) -> None:
    refused = mate.refused(mate.run(["no-such-program"]))
    assert (refused.fault, refused.path) == ("job", "no-such-program")
    assert mate.refused(mate.run("true", workdir="/no/such")).path == "/no/such"
    mate.folder.rename(mate.folder.with_name("elsewhere"))
    for inputs, words in [("{}", "was removed"), ("[]", "cannot create a folder")]:
        refused = mate.refused(mate.run("true", inputs=inputs))
        assert refused.fault == "machine"
        assert words in refused.message


def test_error_that_nobody_thought_of_is_no_fault_of_the_job() -> None:
    assert spawn.classify_start_error(MemoryError("no")) == (False, "MemoryError: no", None)


def test_runner_has_descriptors_for_a_thousand_commands(tmp_path: pathlib.Path) -> None:
    usual = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (512, usual[1]))
    try:
        mate = Mate(tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, usual)
    mate.greet()
    soft, hard = resource.prlimit(mate.child.pid, resource.RLIMIT_NOFILE)
    mate.close()
    assert soft == min(4096, hard)


def test_program_is_found_on_the_path_that_it_will_have(mate: Mate, tmp_path: pathlib.Path) -> None:
    program = tmp_path / "mine"
    program.write_text("#!/bin/sh\necho found\n")
    program.chmod(0o755)
    claim = mate.run(["mine"], environment={"PATH": str(tmp_path)})
    assert mate.ended(claim).exit_code == 0
    assert mate.kept[claim] == b"found\n"


def test_command_has_the_signals_that_a_shell_would_give_it(mate: Mate) -> None:
    claim = mate.run("grep -E 'Sig(Blk|Ign)' /proc/self/status")
    mate.ended(claim)
    masks = [int(line.split()[1], 16) for line in mate.kept[claim].splitlines()]
    # Those above are real-time signals that the C library keeps to itself.
    assert [mask & 0x7FFF_FFFF for mask in masks] == [0, 0]


def test_command_inherits_no_descriptor_but_the_usual_three(mate: Mate) -> None:
    others = [mate.run("echo on; exec sleep 1000") for _ in range(3)]
    for other in others:
        mate.word(other)
    claim = mate.run("echo /proc/self/fd/*")
    mate.ended(claim)
    # The third is the folder that the shell reads.
    assert len(mate.kept[claim].split()) <= 4


def test_output_waits_in_the_pipe_until_the_agent_has_dealt_with_some(mate: Mate) -> None:
    claim = mate.run("yes", window_bytes=100_000)
    mate.hear(lambda: len(mate.output[claim]) >= 100_000)
    # Whatever else is run to its end meanwhile, nothing more comes.
    mate.ended(mate.run("true"))
    got = len(mate.output[claim])
    assert got < 100_000 + 64 * 1024
    mate.say(protocol.Credit(claim, 200_000))
    mate.hear(lambda: len(mate.output[claim]) >= got + 100_000)


def test_output_that_nobody_wants_as_it_comes_is_kept_and_holds_nothing_up(mate: Mate) -> None:
    claim = mate.run("yes | head -c 3000000; printf end", window_bytes=0)
    ended = mate.ended(claim)
    assert mate.output[claim] == b""
    assert mate.kept[claim].endswith(b"y\nend")
    assert len(mate.kept[claim]) == 1000
    gap = mate.kept[claim].index(b"\n[..."), mate.kept[claim].index(b"...]\n") + 5
    assert ended.omitted_bytes == 3_000_003 - 1000 + gap[1] - gap[0]


def test_flood_does_not_grow_the_runner(mate: Mate) -> None:
    mate.ended(mate.run("true"))
    before = _peak(mate.child.pid)
    mate.ended(mate.run("head -c 300000000 /dev/zero", window_bytes=0))
    held = mate.run("head -c 300000000 /dev/zero; echo", window_bytes=1000)
    mate.hear(lambda: len(mate.output[held]) >= 1000)
    mate.ended(mate.run("true"))
    assert _peak(mate.child.pid) - before < 4_000_000


def test_what_left_group_session_environment_and_folder_is_dead_at_the_end(
    mate: Mate, tmp_path: pathlib.Path, lives: Callable[[int], bool]
) -> None:
    pid = tmp_path / "pid"
    claim = mate.run(_leave(pid, pipe=">/dev/null 2>&1"))
    assert mate.ended(claim).exit_code == 0
    assert not lives(int(pid.read_text()))


def test_what_holds_the_pipe_from_outside_the_group_does_not_hang_the_end(
    mate: Mate, tmp_path: pathlib.Path, lives: Callable[[int], bool]
) -> None:
    pid = tmp_path / "pid"
    claim = mate.run(_leave(pid, pipe="") + "; echo done")
    assert mate.ended(claim).exit_code == 0
    assert mate.kept[claim] == b"done\n"
    assert not lives(int(pid.read_text()))


def test_daemon_of_a_command_that_still_runs_is_left_alone_when_another_ends(
    mate: Mate, tmp_path: pathlib.Path, lives: Callable[[int], bool]
) -> None:
    mine, others = tmp_path / "mine", tmp_path / "others"
    claim = mate.run(f"{_leave(mine, pipe='')}; echo on; exec sleep 1000")
    mate.word(claim)
    mate.ended(mate.run(_leave(others, pipe="")))
    assert not lives(int(others.read_text()))
    assert lives(int(mine.read_text()))
    mate.say(protocol.Kill(claim, 0))
    mate.ended(claim)
    assert not lives(int(mine.read_text()))


def test_remains_of_a_daemon_are_taken_away_while_its_command_runs(
    mate: Mate, tmp_path: pathlib.Path
) -> None:
    pid = tmp_path / "pid"
    claim = mate.run(f"{_leave(pid, pipe='')}; kill $(cat {pid}); echo on; exec sleep 1000")
    mate.word(claim)
    while pathlib.Path(f"/proc/{pid.read_text().strip()}").exists():
        select.select([], [], [], 0.005)


def test_crowd_that_multiplies_is_ended_whole(mate: Mate, tmp_path: pathlib.Path) -> None:
    # Each starts two in sessions of their own, six generations long: 126 at most.
    tree = tmp_path / "tree"
    tree.write_text("test $1 = 0 && exec sleep 1000\nn=$(($1 - 1))\n"
                    "setsid sh $0 $n & setsid sh $0 $n & wait\n")  # fmt: skip
    claim = mate.run(f"setsid sh {tree} 6 & sleep 0.1; exit 7")
    assert mate.ended(claim).exit_code == 7
    left = [one for one in pathlib.Path("/proc").glob("[0-9]*/cmdline") if _names(one, tree)]
    assert left == []


def _names(cmdline: pathlib.Path, word: pathlib.Path) -> bool:
    try:
        return str(word).encode() in cmdline.read_bytes()
    except OSError:
        return False


def _peak(pid: int) -> int:
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024


_BLUE = ["/usr/bin/env", "POOL=blue", "HOME=/elsewhere", *COMMAND]


@pytest.mark.parametrize(("options", "seen"), [([], b"\n"), (["--hand-down"], b"blue\n")])
def test_environment_of_the_runner_is_handed_down_only_if_it_was_asked_to(
    tmp_path: pathlib.Path, options: list[str], seen: bytes
) -> None:
    one = Mate(tmp_path, *options, command=_BLUE)
    one.greet()
    claim = one.run("echo $POOL")
    assert one.ended(claim).exit_code == 0
    assert one.kept[claim] == seen
    one.close()


def test_what_is_handed_down_lies_beneath_what_is_the_jobs_own(tmp_path: pathlib.Path) -> None:
    one = Mate(tmp_path, "--hand-down", command=_BLUE)
    one.greet()
    claim = one.run('echo $POOL; test "$HOME" = "$PWD"', environment={"POOL": "red"})
    assert one.ended(claim).exit_code == 0
    assert one.kept[claim] == b"red\n"
    one.close()
