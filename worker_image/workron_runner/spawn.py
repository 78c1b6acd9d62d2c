"""Starts one command: by `posix_spawn`, in a session of its own, in its folder.

Called by `hands`, on a thread. `posix_spawn` shares the memory of the runner until the command is
loaded, so it costs the same however large that is, which a fork does not. It is called in libc
itself, which lets the other threads of this process go on while the command is loaded; Python's own
call has them all wait, and knows no folder to start in.
"""

from __future__ import annotations

import ctypes
import errno
import os
import signal
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


_LIBRARY: Final = ctypes.CDLL(None)
# The structures differ between C libraries; both are far smaller than this.
_ROOM: Final = 1024
_MOST_KNOWN: Final = 256
_KNOWN: Final[dict[tuple[str, str], str]] = {}
_SET_SIGNAL_DEFAULTS: Final = 0x04
_SET_SIGNAL_MASK: Final = 0x08
_SET_SESSION: Final = 0x80
# Python ignores some signals, and a program that inherits that would not notice a closed pipe.
_IGNORED_BY_PYTHON: Final = (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT)


@dataclass(frozen=True, slots=True)
class Launch:
    """What to start, where, and what it sees."""

    argv: Sequence[str]
    directory: str
    environment: Mapping[str, str]
    uid: int | None = None
    """Whom it is to be; None: whom the runner is."""


def is_known_here() -> bool:
    """Whether this C library can change folder between fork and exec."""
    return hasattr(_LIBRARY, "posix_spawn_file_actions_addchdir_np")


def start(launch: Launch, output: int) -> int:
    """Start a command that writes to that descriptor; OSError, ValueError: not started."""
    program = find(launch)
    pid = ctypes.c_int()
    with _Actions(launch.directory, output) as actions:
        number = _LIBRARY.posix_spawn(
            ctypes.byref(pid),
            os.fsencode(program),
            actions,
            _ATTRIBUTES,
            _words(launch.argv),
            _words([f"{name}={value}" for name, value in launch.environment.items()]),
        )
    if number:
        raise OSError(number, os.strerror(number), _culprit(launch.directory, program))
    return pid.value


class _Actions:
    """What is done between the old program and the new one; it needs no more memory than it has."""

    def __init__(self, directory: str, output: int) -> None:
        self._room = ctypes.create_string_buffer(_ROOM)
        self._directory = _bytes(directory)
        self._output = output

    def __enter__(self) -> ctypes.Array[ctypes.c_char]:
        room, output = self._room, self._output
        _checked(_LIBRARY.posix_spawn_file_actions_init(room))
        _checked(_LIBRARY.posix_spawn_file_actions_addopen(room, 0, b"/dev/null", os.O_RDONLY, 0))
        _checked(_LIBRARY.posix_spawn_file_actions_adddup2(room, output, 1))
        _checked(_LIBRARY.posix_spawn_file_actions_adddup2(room, output, 2))
        _checked(_LIBRARY.posix_spawn_file_actions_addchdir_np(room, self._directory))
        return room

    def __exit__(self, *_: object) -> None:
        _LIBRARY.posix_spawn_file_actions_destroy(self._room)


def _attributes() -> ctypes.Array[ctypes.c_char]:
    room, signals = ctypes.create_string_buffer(_ROOM), ctypes.create_string_buffer(_ROOM)
    _checked(_LIBRARY.posix_spawnattr_init(room))
    _checked(_LIBRARY.sigemptyset(signals))
    _checked(_LIBRARY.posix_spawnattr_setsigmask(room, signals))
    for number in _IGNORED_BY_PYTHON:
        _checked(_LIBRARY.sigaddset(signals, int(number)))
    _checked(_LIBRARY.posix_spawnattr_setsigdefault(room, signals))
    flags = _SET_SIGNAL_DEFAULTS | _SET_SIGNAL_MASK | _SET_SESSION
    _checked(_LIBRARY.posix_spawnattr_setflags(room, ctypes.c_short(flags)))
    return room


def _checked(number: int) -> None:
    if number:
        raise OSError(number, os.strerror(number))


def _words(words: Sequence[str]) -> ctypes.Array[ctypes.c_char_p]:
    return (ctypes.c_char_p * (len(words) + 1))(*map(_bytes, words), None)


def _bytes(word: str) -> bytes:
    encoded = os.fsencode(word)
    if b"\0" in encoded:
        raise ValueError(f"{word!r:.80} has a NUL, which ends a word for every program")
    return encoded


def find(launch: Launch) -> str:
    """Find its program as a shell would, on the PATH that it will have itself."""
    word, path = launch.argv[0], launch.environment.get("PATH", os.defpath)
    if "/" in word:
        return word
    # Shells remember too where a program was, for as long as it is there.
    known = _KNOWN.get((path, word))
    if known is not None and os.access(known, os.X_OK):
        return known
    for folder in path.split(os.pathsep):
        # Relative folders of a PATH mean what they mean to the command.
        found = os.path.join(launch.directory, folder, word)  # noqa: PTH118 - half the time
        if os.access(found, os.X_OK) and not os.path.isdir(found):  # noqa: PTH112 - (the same)
            _remember(path, word, found if folder.startswith("/") else None)
            return found
    raise OSError(errno.ENOENT, os.strerror(errno.ENOENT), word)


def _remember(path: str, word: str, found: str | None) -> None:
    if len(_KNOWN) >= _MOST_KNOWN:
        _KNOWN.clear()
    if found is not None:
        _KNOWN[path, word] = found


def _culprit(directory: str, program: str) -> str:
    """Tell which of the two could not be had; libc does not."""
    return program if os.path.isdir(directory) else directory  # noqa: PTH112


_ATTRIBUTES: Final = _attributes()


def start_by_fork(launch: Launch, uid: int, output: int) -> int:
    """Start a command, in no group but its own; OSError, ValueError: not started."""
    # A program that inherits a blocked signal would not hear it.
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    child = subprocess.Popen(  # noqa: S603 - what to start is all that this is asked for
        launch.argv,
        executable=find(launch),
        cwd=launch.directory,
        env=launch.environment,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=output,
        # What this process has open is closed by itself in what it starts.
        close_fds=False,
        start_new_session=True,
        extra_groups=[],
        group=uid,
        user=uid,
    )
    # It is waited for elsewhere: else this object would take its status away when it is forgotten.
    child.returncode = 0
    return child.pid


_FAULTS_OF_THE_JOB: Final = frozenset(
    {
        errno.E2BIG,
        errno.EACCES,
        errno.EISDIR,
        errno.ELOOP,
        errno.ENAMETOOLONG,
        errno.ENOENT,
        errno.ENOEXEC,
        errno.ENOTDIR,
    }
)
"""Errors of a start that lie in the command or its folder; all others lie in this machine."""


class StartRefusal(NamedTuple):
    """Why a command was not started."""

    is_fault_of_job: bool
    what: str
    where: str | None


def start_refusal(error: Exception) -> StartRefusal:
    """Judge the error of a start; a ValueError is about the words of the command."""
    if isinstance(error, ValueError):
        return StartRefusal(is_fault_of_job=True, what=str(error), where=None)
    if not isinstance(error, OSError):
        what = f"{type(error).__name__}: {error}"
        return StartRefusal(is_fault_of_job=False, what=what, where=None)
    where = error.filename if isinstance(error.filename, str) else None
    return StartRefusal(error.errno in _FAULTS_OF_THE_JOB, error.strerror or str(error), where)
