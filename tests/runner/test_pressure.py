"""Who goes when memory runs short: one attempt whole, and not its siblings."""

import pathlib
import signal
import sys
from collections.abc import Callable, Iterator

import pytest

from tests.runner import cgroup
from tests.runner.mate import Mate
from workron_runner import event_loop, memory, protocol
from workron_runner.memory import Headroom, MemoryMonitor

_MIB = 2**20
_LIMIT = 256 * _MIB
_HOG = [sys.executable, "-c", cgroup.HOG]


class _Memory:
    def __init__(self) -> None:
        self.left: float | None = 1000 * _MIB
        self.killed = 5

    def headroom(self) -> Headroom | None:
        return None if self.left is None else Headroom(1000 * _MIB, self.left)

    def oom_kills(self) -> int:
        return self.killed


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    at = [100.0]
    monkeypatch.setattr(event_loop, "boottime", lambda: at[0])
    return at


@pytest.mark.parametrize(
    ("limit", "margin"), [(100, 25), (256, 32), (640, 32), (1000, 50), (64_000, 3200)]
)
def test_margin_is_enough_to_act_in_and_never_most_of_a_small_room(limit: int, margin: int) -> None:
    assert memory.memory_margin(limit * _MIB) == margin * _MIB


def test_limit_is_near_within_the_margin(clock: list[float]) -> None:
    seen = _Memory()
    one = MemoryMonitor(seen)  # type: ignore[arg-type]
    assert one.check() is None
    for left, is_near in [(51, False), (50, True), (-1, True), (60, False)]:
        seen.left = left * _MIB
        clock[0] += 1
        assert one.check() == (1000 * _MIB if is_near else None)
    seen.left = None
    clock[0] += 1
    assert one.check() is None


@pytest.mark.parametrize(("left", "seconds"), [(1000, 0.1), (255, 0.05), (51, 0.005), (0, 0.005)])
def test_next_look_is_the_sooner_the_less_is_left(
    clock: list[float], left: int, seconds: float
) -> None:
    seen = _Memory()
    seen.left = left * _MIB
    one = MemoryMonitor(seen)  # type: ignore[arg-type]
    one.check()
    assert one.seconds_until_check(clock[0]) == pytest.approx(seconds, rel=0.01)
    seen.left = 0
    clock[0] += seconds * 0.9
    assert one.check() is None
    clock[0] += seconds * 0.2
    assert one.check() is not None


@pytest.mark.usefixtures("clock")
@pytest.mark.parametrize(("code", "is_it"), [(-9, True), (137, True), (-15, False), (1, False)])
def test_end_by_linux_is_known_by_its_count(code: int, *, is_it: bool) -> None:
    seen = _Memory()
    one = MemoryMonitor(seen)  # type: ignore[arg-type]
    one.check()
    assert one.limit_of_kill(code) is None
    seen.killed += 1
    assert one.limit_of_kill(code) == (1000 * _MIB if is_it else None)
    # It was one.
    assert not is_it or one.limit_of_kill(code) is None


def test_end_long_after_the_count_rose_is_another_matter(clock: list[float]) -> None:
    seen = _Memory()
    one = MemoryMonitor(seen)  # type: ignore[arg-type]
    seen.killed += 1
    one.check()
    clock[0] += 2
    assert one.limit_of_kill(-9) is None


@pytest.fixture
def group() -> Iterator[pathlib.Path]:
    with cgroup.limited(_LIMIT) as folder:
        yield folder


@pytest.fixture
def limited(group: pathlib.Path, tmp_path: pathlib.Path) -> Iterator[Mate]:
    one = Mate(tmp_path, within=group)
    one.greet()
    yield one
    one.close()


def _kills(group: pathlib.Path) -> int:
    files = [group / "memory.oom_control", group / "memory.events"]
    text = next(one.read_text() for one in files if one.exists())
    return int(text.split("oom_kill ")[1].split()[0])


def _siblings(mate: Mate, go: pathlib.Path) -> list[str]:
    claims = [mate.run(f"echo on; until test -e {go}; do sleep 0.05; done") for _ in range(3)]
    for claim in claims:
        assert mate.word(claim) == b"on"
    return claims


@pytest.mark.parametrize(
    "hog",
    [
        _HOG,
        ["sh", "-c", '"$@"; true', "sh", *_HOG],
        ["sh", "-c", '(setsid "$@" &) ; sleep 1000', "sh", *_HOG],
    ],
)
def test_hog_is_ended_before_the_limit_and_its_siblings_end_well(
    limited: Mate, group: pathlib.Path, tmp_path: pathlib.Path, hog: list[str]
) -> None:
    siblings = _siblings(limited, tmp_path / "go")
    ended = limited.ended(limited.run(hog))
    assert (ended.cause, ended.signal, ended.limit_bytes) == ("memory", signal.SIGKILL, _LIMIT)
    assert 100 * _MIB < ended.peak_bytes < _LIMIT
    assert _kills(group) == 0
    (tmp_path / "go").touch()
    for claim in siblings:
        ended = limited.ended(claim)
        assert (ended.cause, ended.exit_code, ended.limit_bytes) == ("exit", 0, None)


def test_command_that_linux_killed_for_memory_is_told_as_that(
    limited: Mate, group: pathlib.Path, tmp_path: pathlib.Path, lives: Callable[[int], bool]
) -> None:
    wait = f'echo $$; until test -e {tmp_path}/go; do sleep 0.05; done; exec "$@"'
    claim = limited.run(["sh", "-c", wait, "sh", *_HOG])
    pid = int(limited.word(claim))
    # Nobody looks, so that Linux has to.
    limited.child.send_signal(signal.SIGSTOP)
    (tmp_path / "go").touch()
    while not _kills(group) or lives(pid):
        pass
    limited.child.send_signal(signal.SIGCONT)
    ended = limited.ended(claim)
    assert (ended.cause, ended.signal, ended.limit_bytes) == ("memory", signal.SIGKILL, _LIMIT)


def test_command_that_is_killed_by_somebody_else_is_not_told_as_that(limited: Mate) -> None:
    ended = limited.ended(limited.run("kill -9 $$"))
    assert (ended.cause, ended.signal, ended.limit_bytes) == ("exit", signal.SIGKILL, None)


def test_pages_of_files_are_no_reason_to_end_anybody(limited: Mate) -> None:
    # Written to the disk first, or they could not be taken back at once.
    fill = "dd if=/dev/zero of=file bs=1M count=400 conv=fsync 2>&1; cat file file > /dev/null"
    ended = limited.ended(limited.run(fill))
    assert (ended.cause, ended.exit_code) == ("exit", 0)


def test_what_processes_share_is_counted_once(limited: Mate) -> None:
    # 60 MiB that 8 others share are less than 100 MiB of one alone.
    share = (
        "import os, signal\nheld = b'x' * (60 * 2**20)\n"
        "for _ in range(8):\n    if not os.fork(): signal.pause()\n"
        "print('on', flush=True)\nsignal.pause()"
    )
    shared = limited.run([sys.executable, "-c", share])
    assert limited.word(shared) == b"on"
    ended = limited.ended(limited.run(_HOG))
    assert ended.cause == "memory"
    limited.say(protocol.Kill(shared, 0))
    assert limited.ended(shared).cause == "kill"
