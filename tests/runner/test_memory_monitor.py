"""When memory runs short, the attempt that uses most is killed, and its siblings are not."""

import pathlib
import signal
import sys
from collections.abc import Callable, Iterator

import pytest

from tests.runner import cgroup
from tests.runner.fake_agent import FakeAgent
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
def test_margin_is_a_bounded_share_of_the_limit(limit: int, margin: int) -> None:
    assert memory.memory_margin(limit * _MIB) == margin * _MIB


def test_check_returns_the_limit_when_the_headroom_is_within_the_margin(clock: list[float]) -> None:
    seen = _Memory()
    one = MemoryMonitor(seen)  # type: ignore[arg-type]
    assert one.check() is None
    for left, is_within in [(51, False), (50, True), (-1, True), (60, False)]:
        seen.left = left * _MIB
        clock[0] += 1
        assert one.check() == (1000 * _MIB if is_within else None)
    seen.left = None
    clock[0] += 1
    assert one.check() is None


@pytest.mark.parametrize(("left", "seconds"), [(1000, 0.1), (255, 0.05), (51, 0.005), (0, 0.005)])
def test_next_check_is_sooner_when_less_headroom_is_left(
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
@pytest.mark.parametrize(
    ("code", "is_explained"), [(-9, True), (137, True), (-15, False), (1, False)]
)
def test_kill_is_explained_by_the_limit_when_linux_counted_one(
    code: int, *, is_explained: bool
) -> None:
    seen = _Memory()
    one = MemoryMonitor(seen)  # type: ignore[arg-type]
    one.check()
    assert one.limit_of_kill(code) is None
    seen.killed += 1
    assert one.limit_of_kill(code) == (1000 * _MIB if is_explained else None)
    # The count rose by one, which is explained now.
    assert not is_explained or one.limit_of_kill(code) is None


def test_kill_is_not_explained_by_the_limit_when_the_count_rose_long_before(
    clock: list[float],
) -> None:
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
def limited(group: pathlib.Path, tmp_path: pathlib.Path) -> Iterator[FakeAgent]:
    with FakeAgent(tmp_path, cgroup=group) as agent:
        yield agent


def _kills(group: pathlib.Path) -> int:
    files = [group / "memory.oom_control", group / "memory.events"]
    text = next(one.read_text() for one in files if one.exists())
    return int(text.split("oom_kill ")[1].split()[0])


def _siblings(agent: FakeAgent, go: pathlib.Path) -> list[str]:
    claims = [agent.run(f"echo on; until test -e {go}; do sleep 0.05; done") for _ in range(3)]
    for claim in claims:
        assert agent.read_line(claim) == b"on"
    return claims


@pytest.mark.parametrize(
    "hog",
    [
        _HOG,
        ["sh", "-c", '"$@"; true', "sh", *_HOG],
        ["sh", "-c", '(setsid "$@" &) ; sleep 1000', "sh", *_HOG],
    ],
)
def test_largest_attempt_is_killed_before_the_limit_when_memory_runs_short(
    limited: FakeAgent, group: pathlib.Path, tmp_path: pathlib.Path, hog: list[str]
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


def test_cause_is_memory_when_linux_killed_the_command_for_it(
    limited: FakeAgent,
    group: pathlib.Path,
    tmp_path: pathlib.Path,
    is_running: Callable[[int], bool],
) -> None:
    wait = f'echo $$; until test -e {tmp_path}/go; do sleep 0.05; done; exec "$@"'
    claim = limited.run(["sh", "-c", wait, "sh", *_HOG])
    pid = int(limited.read_line(claim))
    # The runner is stopped, so that Linux acts first.
    limited.child.send_signal(signal.SIGSTOP)
    (tmp_path / "go").touch()
    while not _kills(group) or is_running(pid):
        pass
    limited.child.send_signal(signal.SIGCONT)
    ended = limited.ended(claim)
    assert (ended.cause, ended.signal, ended.limit_bytes) == ("memory", signal.SIGKILL, _LIMIT)


def test_cause_is_exit_when_another_process_killed_the_command(limited: FakeAgent) -> None:
    ended = limited.ended(limited.run("kill -9 $$"))
    assert (ended.cause, ended.signal, ended.limit_bytes) == ("exit", signal.SIGKILL, None)


def test_no_attempt_is_killed_when_only_the_page_cache_grows(limited: FakeAgent) -> None:
    # Written to the disk first: Linux cannot reclaim dirty pages at once.
    fill = "dd if=/dev/zero of=file bs=1M count=400 conv=fsync 2>&1; cat file file > /dev/null"
    ended = limited.ended(limited.run(fill))
    assert (ended.cause, ended.exit_code) == ("exit", 0)


def test_shared_memory_is_counted_once_when_processes_share_it(limited: FakeAgent) -> None:
    # 60 MiB that 8 processes share are less than 100 MiB of one process.
    share = (
        "import os, signal\nheld = b'x' * (60 * 2**20)\n"
        "for _ in range(8):\n    if not os.fork(): signal.pause()\n"
        "print('on', flush=True)\nsignal.pause()"
    )
    shared = limited.run([sys.executable, "-c", share])
    assert limited.read_line(shared) == b"on"
    ended = limited.ended(limited.run(_HOG))
    assert ended.cause == "memory"
    limited.send(protocol.Kill(shared, 0))
    assert limited.ended(shared).cause == "kill"
