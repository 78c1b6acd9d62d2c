"""Privileges and isolation of commands, and how the runner prepares its own process."""

import os
import pathlib
import resource
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest

from tests.runner.fake_agent import FakeAgent, environment
from workron_runner import __main__, sandbox, uids
from workron_runner.sandbox import SandboxError
from workron_runner.uids import UidRange

_RANGE = UidRange(5000, 5009)
_ALL = "0 0 4294967295"
_CHOWN_DAC_FOWNER_KILL_GID_UID = 0b11101011
_NEEDS_LANDLOCK = pytest.mark.skipif(
    not sandbox.has_landlock(), reason="this kernel has no Landlock scopes"
)
_ISOLATE = ["--isolate"]
_TRY = ["--try-isolate"]
_SLEEP = "echo $$; exec sleep 1000"


@pytest.fixture
def root(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    monkeypatch.setattr(uids, "is_used", lambda _: False)
    monkeypatch.setattr(uids, "is_supported", lambda: True)
    _write(tmp_path)
    return tmp_path


def _write(
    root: pathlib.Path,
    *,
    uid: int = 0,
    capabilities: int = _CHOWN_DAC_FOWNER_KILL_GID_UID,
    maps: tuple[str, str] = (_ALL, _ALL),
) -> None:
    folder = root / "proc/self"
    folder.mkdir(parents=True, exist_ok=True)
    uids_line = f"Uid:\t{uid}\t{uid}\t{uid}\t{uid}\n"
    status = f"Name:\tpython\n{uids_line}Groups:\t\nCapEff:\t{capabilities:016x}\n"
    (folder / "status").write_text(status)
    for name, text in zip(("uid_map", "gid_map"), maps, strict=True):
        (folder / name).write_text(f"{text}\n")


def test_uids_are_allowed_when_root_has_all_capabilities(root: pathlib.Path) -> None:
    sandbox.check_uid_privileges(_RANGE, root)
    sandbox.check_process_limit(root)


def test_uids_are_rejected_when_the_process_is_not_root(root: pathlib.Path) -> None:
    _write(root, uid=1000)
    with pytest.raises(SandboxError, match="needs root, and this process has the uid 1000"):
        sandbox.check_uid_privileges(_RANGE, root)


@pytest.mark.parametrize(
    ("bit", "name"),
    [(0, "CHOWN"), (1, "DAC_OVERRIDE"), (3, "FOWNER"), (5, "KILL"), (6, "SETGID"), (7, "SETUID")],
)
def test_capability_is_named_when_it_is_missing(root: pathlib.Path, bit: int, name: str) -> None:
    _write(root, capabilities=_CHOWN_DAC_FOWNER_KILL_GID_UID & ~(1 << bit))
    with pytest.raises(SandboxError, match=f"lacks: CAP_{name}$"):
        sandbox.check_uid_privileges(_RANGE, root)


@pytest.mark.parametrize(
    ("maps", "kind"), [(("0 1000 5005", _ALL), "uid"), ((_ALL, "0 1000 1\n1 2000 5008"), "gid")]
)
def test_uids_are_rejected_when_the_user_namespace_lacks_them(
    root: pathlib.Path, maps: tuple[str, str], kind: str
) -> None:
    _write(root, maps=maps)
    with pytest.raises(SandboxError, match=f"needs {kind}s of this user namespace, and 5000-5009"):
        sandbox.check_uid_privileges(_RANGE, root)


def test_uids_are_rejected_when_the_first_one_is_in_use(
    root: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(uids, "is_used", lambda uid: uid == _RANGE.first)
    with pytest.raises(SandboxError, match="needs unused uids, and 5000 is in use"):
        sandbox.check_uid_privileges(_RANGE, root)


def test_uids_are_rejected_when_the_machine_type_is_unknown(
    root: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(uids, "is_supported", lambda: False)
    with pytest.raises(SandboxError, match="is not supported on "):
        sandbox.check_uid_privileges(_RANGE, root)


def test_process_limit_is_rejected_when_it_would_bind_the_runner(root: pathlib.Path) -> None:
    _write(root, maps=("0 1000 65536", "0 1000 65536"))
    sandbox.check_uid_privileges(_RANGE, root)
    with pytest.raises(SandboxError, match="in any other one the limit binds root too"):
        sandbox.check_process_limit(root)


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["--uids", "5"], "'5' is not a range of two or more uids"),
        (["--uids", "5-5"], "'5-5' is not a range"),
        (["--uids", "0-5"], "'0-5' is not a range"),
        (["--uids", "9-5"], "'9-5' is not a range"),
        (["--uids", "1-4294967295"], "is not a range"),
        (["--uids", "a-b"], "'a-b' is not a range"),
        (["--processes", "5"], "--processes needs a number above 0, and --uids"),
        (["--uids", "5000-5009", "--processes", "0"], "--processes needs a number above 0"),
        (["--uids", "5000-5009"], "--uids needs root, as mocked"),
    ],
)
def test_options_are_rejected_with_a_reason_when_they_are_invalid(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: list[str],
    error: str,
) -> None:
    def check(_: UidRange) -> None:
        if error.endswith("as mocked"):
            raise SandboxError("needs root, as mocked")

    monkeypatch.setattr(sandbox, "check_uid_privileges", check)
    monkeypatch.setattr("sys.argv", ["runner", "--descriptor", "0", *words])
    with pytest.raises(SystemExit):
        __main__._parse(__main__._parser())
    assert error in capsys.readouterr().err


@pytest.fixture
def agent_with(request: pytest.FixtureRequest, tmp_path: pathlib.Path) -> Iterator[FakeAgent]:
    with FakeAgent(tmp_path, *request.param) as agent:
        yield agent


@_NEEDS_LANDLOCK
@pytest.mark.parametrize(
    ("agent_with", "is_reached"),
    [(_ISOLATE, False), (_TRY, False), ([], True)],
    indirect=["agent_with"],
)
@pytest.mark.parametrize("action", ["kill -0 {pid}", "readlink /proc/{pid}/cwd", "kill -0 $PPID"])
def test_command_reaches_another_only_when_it_is_not_isolated(
    agent_with: FakeAgent, action: str, *, is_reached: bool
) -> None:
    pid = int(agent_with.read_line(agent_with.run(_SLEEP)))
    ended = agent_with.ended(agent_with.run(action.format(pid=pid)))
    assert (ended.exit_code == 0) is is_reached


@_NEEDS_LANDLOCK
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can drop a capability")
@pytest.mark.parametrize(
    ("agent_with", "is_read"), [(_ISOLATE, False), ([], True)], indirect=["agent_with"]
)
def test_environment_is_unreadable_without_capabilities_when_commands_are_isolated(
    agent_with: FakeAgent, *, is_read: bool
) -> None:
    without_capabilities = "exec setpriv --bounding-set=-all"
    victim = agent_with.run(f"{without_capabilities} sh -c '{_SLEEP}'")
    pid = int(agent_with.read_line(victim))
    ended = agent_with.ended(agent_with.run(f"{without_capabilities} cat /proc/{pid}/environ"))
    assert (ended.exit_code == 0) is is_read


@_NEEDS_LANDLOCK
@pytest.mark.parametrize("agent_with", [_ISOLATE], indirect=True)
@pytest.mark.parametrize(
    "action", ["grep -q sleep /proc/{pid}/cmdline", "ls {folder} && touch {folder}/seen"]
)
def test_isolated_command_still_reads_arguments_and_files_of_another(
    agent_with: FakeAgent, action: str
) -> None:
    claim = agent_with.run("pwd; echo $$; exec sleep 1000")
    folder, pid = (agent_with.read_line(claim).decode() for _ in range(2))
    action = action.format(pid=pid, folder=folder)
    assert agent_with.ended(agent_with.run(action)).exit_code == 0


@_NEEDS_LANDLOCK
@pytest.mark.parametrize("agent_with", [_ISOLATE], indirect=True)
def test_isolated_command_reaches_its_own_children(agent_with: FakeAgent) -> None:
    command = "sleep 1000 & readlink /proc/$!/cwd && kill $!; wait $!; test $? = 143"
    assert agent_with.ended(agent_with.run(command)).exit_code == 0


@_NEEDS_LANDLOCK
@pytest.mark.parametrize("agent_with", [_ISOLATE], indirect=True)
def test_processes_and_thread_are_gone_when_an_isolated_command_ends(
    agent_with: FakeAgent, tmp_path: pathlib.Path, is_running: Callable[[int], bool]
) -> None:
    pid, tasks = tmp_path / "pid", pathlib.Path(f"/proc/{agent_with.child.pid}/task")
    agent_with.ended(agent_with.run("true"))
    before = len(list(tasks.iterdir()))
    leave = f"env -i setsid sh -c 'echo $$ > {pid}.new; mv {pid}.new {pid}; exec sleep 1000' &"
    agent_with.ended(agent_with.run(f"{leave} while ! test -e {pid}; do :; done"))
    assert not is_running(int(pid.read_text()))
    # A joined thread is listed there for a moment.
    while len(list(tasks.iterdir())) > before:
        pass


def test_isolate_is_rejected_when_the_kernel_lacks_landlock(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sandbox, "has_landlock", lambda: False)
    monkeypatch.setattr("sys.argv", ["runner", "--isolate", "--socket", str(tmp_path / "socket")])
    with pytest.raises(SystemExit):
        __main__._parse(__main__._parser())
    assert "Linux 6.12 or newer" in capsys.readouterr().err


def test_try_isolate_logs_a_warning_when_the_kernel_lacks_landlock(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sandbox, "has_landlock", lambda: False)
    options = __main__._parser().parse_args([*_TRY, "--socket", "socket"])
    assert __main__._is_isolating(options) is False
    assert "commands are not isolated from each other" in capsys.readouterr().err


def test_process_is_an_undumpable_subreaper_when_it_is_prepared(tmp_path: pathlib.Path) -> None:
    ask = (
        "from workron_runner import sandbox; import ctypes; sandbox.prepare_process(); "
        "c = ctypes.CDLL(None); n = ctypes.c_int(); c.prctl(37, ctypes.byref(n), 0, 0, 0); "
        "print(c.prctl(3, 0, 0, 0, 0), n.value)"
    )
    asked = subprocess.run(
        [sys.executable, "-c", ask], env=environment(tmp_path), stdout=subprocess.PIPE, check=True
    )
    assert asked.stdout == b"0 1\n"


def test_descriptor_limit_is_raised_when_the_inherited_one_is_low(tmp_path: pathlib.Path) -> None:
    usual = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (512, usual[1]))
    try:
        agent = FakeAgent(tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, usual)
    with agent:
        soft, hard = resource.prlimit(agent.child.pid, resource.RLIMIT_NOFILE)
    assert soft == min(4096, hard)


def test_exit_code_is_reported_when_the_runner_inherited_an_ignored_sigchld(
    tmp_path: pathlib.Path,
) -> None:
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        agent = FakeAgent(tmp_path)
    finally:
        signal.signal(signal.SIGCHLD, before)
    with agent:
        assert agent.ended(agent.run("exit 3")).exit_code == 3
