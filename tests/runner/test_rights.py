"""What a runner says when it may not give its commands uids or limits of their own."""

import pathlib

import pytest

from workron_runner import __main__, sandbox, uids
from workron_runner.sandbox import SandboxError
from workron_runner.uids import UidRange

_RANGE = UidRange(5000, 5009)
_ALL = "0 0 4294967295"
_CHOWN_DAC_FOWNER_KILL_GID_UID = 0b11101011


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
    powers: int = _CHOWN_DAC_FOWNER_KILL_GID_UID,
    maps: tuple[str, str] = (_ALL, _ALL),
) -> None:
    folder = root / "proc/self"
    folder.mkdir(parents=True, exist_ok=True)
    status = f"Name:\tpython\nUid:\t{uid}\t{uid}\t{uid}\t{uid}\nGroups:\t\nCapEff:\t{powers:016x}\n"
    (folder / "status").write_text(status)
    for name, text in zip(("uid_map", "gid_map"), maps, strict=True):
        (folder / name).write_text(f"{text}\n")


def test_root_with_all_that_it_takes_may(root: pathlib.Path) -> None:
    sandbox.check_uid_privileges(_RANGE, root)
    sandbox.check_process_limit(root)


def test_other_users_may_not(root: pathlib.Path) -> None:
    _write(root, uid=1000)
    with pytest.raises(SandboxError, match="needs root, and this process has the uid 1000"):
        sandbox.check_uid_privileges(_RANGE, root)


@pytest.mark.parametrize(
    ("bit", "name"),
    [(0, "CHOWN"), (1, "DAC_OVERRIDE"), (3, "FOWNER"), (5, "KILL"), (6, "SETGID"), (7, "SETUID")],
)
def test_right_that_is_missing_is_named(root: pathlib.Path, bit: int, name: str) -> None:
    _write(root, powers=_CHOWN_DAC_FOWNER_KILL_GID_UID & ~(1 << bit))
    with pytest.raises(SandboxError, match=f"lacks: CAP_{name}$"):
        sandbox.check_uid_privileges(_RANGE, root)


@pytest.mark.parametrize(
    ("maps", "kind"), [(("0 1000 5005", _ALL), "uid"), ((_ALL, "0 1000 1\n1 2000 5008"), "gid")]
)
def test_uids_that_a_container_does_not_have_are_named(
    root: pathlib.Path, maps: tuple[str, str], kind: str
) -> None:
    _write(root, maps=maps)
    with pytest.raises(SandboxError, match=f"needs {kind}s of this user namespace, and 5000-5009"):
        sandbox.check_uid_privileges(_RANGE, root)


def test_uid_that_somebody_has_is_named(
    root: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(uids, "is_used", lambda uid: uid == _RANGE.first)
    with pytest.raises(SandboxError, match="needs unused uids, and 5000 is in use"):
        sandbox.check_uid_privileges(_RANGE, root)


def test_unknown_kind_of_machine_is_named(
    root: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(uids, "is_supported", lambda: False)
    with pytest.raises(SandboxError, match="is not supported on "):
        sandbox.check_uid_privileges(_RANGE, root)


def test_limit_on_processes_that_would_bind_the_runner_too_is_refused(root: pathlib.Path) -> None:
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
        (["--uids", "5000-5009"], "--uids needs root, as told"),
    ],
)
def test_options_that_cannot_be_followed_are_refused_in_words(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: list[str],
    error: str,
) -> None:
    def check(_: UidRange) -> None:
        if error.endswith("as told"):
            raise SandboxError("needs root, as told")

    monkeypatch.setattr(sandbox, "check_uid_privileges", check)
    monkeypatch.setattr("sys.argv", ["runner", "--descriptor", "0", *words])
    with pytest.raises(SystemExit):
        __main__._parse(__main__._parser())
    assert error in capsys.readouterr().err
