"""Limits of memory in either version of cgroups, read from files as Linux writes them."""

import pathlib

import pytest

from workron_runner import memory

_MIB = 2**20
_V1_NONE = "9223372036854771712"


def _write(root: pathlib.Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def _v2(root: pathlib.Path, path: str = "/", top: str = "/") -> None:
    mount = f"30 23 0:26 {top} /sys/fs/cgroup rw,nosuid - cgroup2 cgroup rw,nsdelegate\n"
    _write(root, {"proc/self/cgroup": f"0::{path}\n", "proc/self/mountinfo": mount})


def _v1(root: pathlib.Path, path: str = "/", top: str = "/") -> None:
    mounts = (
        "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755\n"
        f"33 31 0:30 {top} /sys/fs/cgroup/cpu rw shared:9 - cgroup cgroup rw,cpu\n"
        f"35 31 0:32 {top} /sys/fs/cgroup/memory rw shared:11 - cgroup cgroup rw,memory\n"
        "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
    )
    groups = f"5:cpu:{path}\n4:memory:{path}\n0::/\n"
    _write(root, {"proc/self/cgroup": groups, "proc/self/mountinfo": mounts})


def _v2_level(limit: str, used: int, *, stat: str = "", kills: int = 0) -> dict[str, str]:
    return {
        "memory.max": f"{limit}\n",
        "memory.current": f"{used}\n",
        "memory.stat": f"anon 4096\nfile 8192\n{stat}",
        "memory.events": f"low 0\nhigh 0\nmax 17\noom {kills}\noom_kill {kills}\n",
    }


def _v1_level(limit: str, used: int, *, stat: str = "", kills: int = 0) -> dict[str, str]:
    return {
        "memory.limit_in_bytes": f"{limit}\n",
        "memory.usage_in_bytes": f"{used}\n",
        "memory.stat": f"cache 8192\ninactive_file 4096\n{stat}",
        "memory.oom_control": f"oom_kill_disable 0\nunder_oom 0\noom_kill {kills}\n",
    }


def _put(root: pathlib.Path, at: str, files: dict[str, str]) -> None:
    _write(root, {f"sys/fs/cgroup/{at}/{name}": text for name, text in files.items()})


def test_headroom_counts_reclaimable_memory_as_free_when_cgroups_are_version_2(
    tmp_path: pathlib.Path,
) -> None:
    _v2(tmp_path, "/a/b")
    stat = "inactive_file 100\nactive_file 20\nslab_reclaimable 3\n"
    _put(tmp_path, "a/b", _v2_level("1000", 900, stat=stat, kills=2))
    _put(tmp_path, "a", _v2_level("max", 2000))
    found = memory.find_memory(tmp_path)
    assert found is not None
    assert found.headroom() == memory.Headroom(1000, 223)
    assert found.oom_kills() == 2


def test_headroom_counts_reclaimable_memory_as_free_when_cgroups_are_version_1(
    tmp_path: pathlib.Path,
) -> None:
    _v1(tmp_path, "/a/b")
    stat = "total_inactive_file 100\ntotal_active_file 20\n"
    _put(tmp_path, "memory/a/b", _v1_level("1000", 900, stat=stat, kills=3))
    _put(tmp_path, "memory/a", _v1_level(_V1_NONE, 2000))
    _put(tmp_path, "memory", _v1_level(_V1_NONE, 9000))
    found = memory.find_memory(tmp_path)
    assert found is not None
    assert found.headroom() == memory.Headroom(1000, 220)
    assert found.oom_kills() == 3


def test_limit_of_a_higher_level_counts_when_it_is_tighter(tmp_path: pathlib.Path) -> None:
    _v2(tmp_path, "/a/b")
    _put(tmp_path, "a/b", _v2_level("1000", 900))
    _put(tmp_path, "a", _v2_level("5000", 4950, kills=9))
    found = memory.find_memory(tmp_path)
    assert found is not None
    assert found.headroom() == memory.Headroom(5000, 50)
    assert found.oom_kills() == 0


@pytest.mark.parametrize(
    ("path", "top"),
    [
        ("/", "/"),
        ("/docker/abc", "/docker/abc"),
        ("/docker/abc", "/"),
        ("/../../kubepods/pod", "/"),
        ("/..", "/"),
        ("/docker/abcdef", "/docker/abc"),
    ],
)
@pytest.mark.parametrize("version", [1, 2])
def test_mount_is_the_own_cgroup_when_in_a_container(
    tmp_path: pathlib.Path, version: int, path: str, top: str
) -> None:
    if version == 1:
        _v1(tmp_path, path, top)
        _put(tmp_path, "memory", _v1_level("1000", 900))
    else:
        _v2(tmp_path, path, top)
        _put(tmp_path, ".", _v2_level("1000", 900))
    found = memory.find_memory(tmp_path)
    assert found is not None
    assert found.headroom() == memory.Headroom(1000, 100)


def test_own_cgroup_is_found_when_it_is_below_the_mounted_one(tmp_path: pathlib.Path) -> None:
    _v1(tmp_path, "/docker/abc/own", "/docker/abc")
    _put(tmp_path, "memory/own", _v1_level("1000", 900))
    _put(tmp_path, "memory", _v1_level("1000", 100))
    found = memory.find_memory(tmp_path)
    assert found is not None
    assert found.headroom() == memory.Headroom(1000, 100)


@pytest.mark.parametrize("files", [{}, {"proc/self/cgroup": "0::/\n"}, {"proc/self/cgroup": "?"}])
def test_memory_is_unlimited_when_cgroups_cannot_be_read(
    tmp_path: pathlib.Path, files: dict[str, str]
) -> None:
    _write(tmp_path, files)
    assert memory.find_memory(tmp_path) is None


def test_memory_is_unlimited_when_no_level_has_a_limit(tmp_path: pathlib.Path) -> None:
    _v2(tmp_path, "/a")
    _put(tmp_path, "a", _v2_level("max", 900))
    assert memory.find_memory(tmp_path) is None
    _v1(tmp_path, "/a")
    _put(tmp_path, "memory/a", _v1_level(_V1_NONE, 900))
    assert memory.find_memory(tmp_path) is None


def test_headroom_follows_when_the_limit_changes(tmp_path: pathlib.Path) -> None:
    _v2(tmp_path)
    _put(tmp_path, ".", _v2_level("1000", 900))
    found = memory.find_memory(tmp_path)
    assert found is not None
    _put(tmp_path, ".", {"memory.max": "2000\n"})
    assert found.headroom() == memory.Headroom(2000, 1100)
    _put(tmp_path, ".", {"memory.max": "max\n"})
    assert found.headroom() is None


def test_headroom_is_unknown_when_usage_cannot_be_read(tmp_path: pathlib.Path) -> None:
    _v2(tmp_path)
    _put(tmp_path, ".", _v2_level("1000", 900))
    found = memory.find_memory(tmp_path)
    assert found is not None
    (tmp_path / "sys/fs/cgroup/memory.current").write_text("")
    assert found.headroom() is None


@pytest.mark.parametrize(
    ("version", "may", "used", "free", "left"),
    [
        (2, "max", 0, 5, 100 + 5 * 1024),
        (2, "50", 10, 5, 140),
        (2, "0", 0, 5, 100),
        (2, "50", 10, 0, 100),
        (1, _V1_NONE, 900, 5, 100 + 5 * 1024),
        (1, "1050", 910, 5, 140),
        (1, "1000", 900, 5, 100),
    ],
)
def test_headroom_includes_free_swap_when_the_cgroup_may_use_it(
    tmp_path: pathlib.Path, version: int, may: str, used: int, free: int, left: int
) -> None:
    swap = {
        "proc/swaps": "Filename Type Size Used Priority\n/swap file 9 0 -2\n",
        "proc/meminfo": f"MemTotal: 99 kB\nSwapTotal: 9 kB\nSwapFree: {free} kB\n",
    }
    _write(tmp_path, swap)
    if version == 1:
        _v1(tmp_path)
        words = {"memory.memsw.limit_in_bytes": may, "memory.memsw.usage_in_bytes": str(used)}
        _put(tmp_path, "memory", _v1_level("1000", 900) | words)
    else:
        _v2(tmp_path)
        words = {"memory.swap.max": may, "memory.swap.current": str(used)}
        _put(tmp_path, ".", _v2_level("1000", 900) | words)
    found = memory.find_memory(tmp_path)
    assert found is not None
    assert found.headroom() == memory.Headroom(1000, left)
