"""Starts one command in a session of its own, in its folder, on a launcher thread.

`spawn` calls `posix_spawn` of the C library: it shares the runner's memory until the command is
executed, so its cost does not grow with the runner as that of a fork does, and, unlike Python's own
`os.posix_spawn`, it lets other threads run meanwhile and can change the folder. `fork` is for
commands of another uid, which `posix_spawn` cannot set.

A command starts with every signal at its default and none blocked, whatever the runner inherited.
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
_STRUCT_BYTES: Final = 1024
"""The structures differ between C libraries; each is far smaller than this."""
_MAX_CACHED_PROGRAMS: Final = 256
_PROGRAMS: Final[dict[tuple[str, str], str]] = {}
_SETSIGDEF: Final = 0x04
_SETSIGMASK: Final = 0x08
_SETSID: Final = 0x80
_CANNOT_BE_SET: Final = {signal.SIGKILL, signal.SIGSTOP}


@dataclass(frozen=True, slots=True)
class Launch:
    """The program to execute, its folder and its environment."""

    argv: Sequence[str]
    directory: str
    environment: Mapping[str, str]
    uid: int | None = None
    """None: the runner's own."""


def is_supported() -> bool:
    """Whether the C library can change the folder between fork and exec."""
    return hasattr(_LIBRARY, "posix_spawn_file_actions_addchdir_np")


def spawn(launch: Launch, output: int) -> int:
    """Start a command that writes to that descriptor; OSError or ValueError if it cannot start."""
    program = find_program(launch)
    pid = ctypes.c_int()
    with _FileActions(launch.directory, output) as actions:
        number = _LIBRARY.posix_spawn(
            ctypes.byref(pid),
            os.fsencode(program),
            actions,
            _ATTRIBUTES,
            _string_array(launch.argv),
            _string_array([f"{name}={value}" for name, value in launch.environment.items()]),
        )
    if number:
        raise OSError(number, os.strerror(number), _failed_path(launch.directory, program))
    return pid.value


def fork(launch: Launch, uid: int, output: int) -> int:
    """Start a command as another uid, without extra groups; raises like `spawn`.

    Python resets SIGPIPE and SIGXFSZ, `sandbox.prepare_process` sees to every other signal that
    was ignored, and this thread unblocks them all.
    """
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    child = subprocess.Popen(  # noqa: S603 - executing commands is what the runner is for
        launch.argv,
        executable=find_program(launch),
        cwd=launch.directory,
        env=launch.environment,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=output,
        # All descriptors of this process are close-on-exec.
        close_fds=False,
        start_new_session=True,
        extra_groups=[],
        group=uid,
        user=uid,
    )
    # It is reaped elsewhere; without a return code this object would do so when it is deleted.
    child.returncode = 0
    return child.pid


class _FileActions:
    """The actions in the child before exec; allocates before the child exists."""

    def __init__(self, directory: str, output: int) -> None:
        self._struct = ctypes.create_string_buffer(_STRUCT_BYTES)
        self._directory = _encode(directory)
        self._output = output

    def __enter__(self) -> ctypes.Array[ctypes.c_char]:
        actions, output = self._struct, self._output
        _check(_LIBRARY.posix_spawn_file_actions_init(actions))
        _check(_LIBRARY.posix_spawn_file_actions_addopen(actions, 0, b"/dev/null", os.O_RDONLY, 0))
        _check(_LIBRARY.posix_spawn_file_actions_adddup2(actions, output, 1))
        _check(_LIBRARY.posix_spawn_file_actions_adddup2(actions, output, 2))
        _check(_LIBRARY.posix_spawn_file_actions_addchdir_np(actions, self._directory))
        return actions

    def __exit__(self, *_: object) -> None:
        _LIBRARY.posix_spawn_file_actions_destroy(self._struct)


def _attributes() -> ctypes.Array[ctypes.c_char]:
    attributes = ctypes.create_string_buffer(_STRUCT_BYTES)
    signals = ctypes.create_string_buffer(_STRUCT_BYTES)
    _check(_LIBRARY.posix_spawnattr_init(attributes))
    _check(_LIBRARY.sigemptyset(signals))
    _check(_LIBRARY.posix_spawnattr_setsigmask(attributes, signals))
    for number in signal.valid_signals() - _CANNOT_BE_SET:
        _check(_LIBRARY.sigaddset(signals, int(number)))
    _check(_LIBRARY.posix_spawnattr_setsigdefault(attributes, signals))
    flags = _SETSIGDEF | _SETSIGMASK | _SETSID
    _check(_LIBRARY.posix_spawnattr_setflags(attributes, ctypes.c_short(flags)))
    return attributes


def _check(number: int) -> None:
    if number:
        raise OSError(number, os.strerror(number))


def _string_array(words: Sequence[str]) -> ctypes.Array[ctypes.c_char_p]:
    return (ctypes.c_char_p * (len(words) + 1))(*map(_encode, words), None)


def _encode(word: str) -> bytes:
    encoded = os.fsencode(word)
    if b"\0" in encoded:
        raise ValueError(f"{word!r:.80} contains a NUL, which no argument or variable can have")
    return encoded


def find_program(launch: Launch) -> str:
    """Search the program as a shell would, in the PATH of the command's own environment."""
    word, path = launch.argv[0], launch.environment.get("PATH", os.defpath)
    if "/" in word:
        return word
    # Cached, as shells do, for as long as the file exists.
    cached = _PROGRAMS.get((path, word))
    if cached is not None and os.access(cached, os.X_OK):
        return cached
    for folder in path.split(os.pathsep):
        # A relative folder in PATH is relative to the command's folder.
        found = os.path.join(launch.directory, folder, word)  # noqa: PTH118 - half the time
        if os.access(found, os.X_OK) and not os.path.isdir(found):  # noqa: PTH112 - half the time
            if folder.startswith("/"):
                _cache(path, word, found)
            return found
    raise OSError(errno.ENOENT, os.strerror(errno.ENOENT), word)


def _cache(path: str, word: str, found: str) -> None:
    if len(_PROGRAMS) >= _MAX_CACHED_PROGRAMS:
        _PROGRAMS.clear()
    _PROGRAMS[path, word] = found


def _failed_path(directory: str, program: str) -> str:
    """Return which of the two caused an error; the C library does not say."""
    return program if os.path.isdir(directory) else directory  # noqa: PTH112


_ATTRIBUTES: Final = _attributes()

_JOB_FAULTS: Final = frozenset(
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
"""Errors that lie in the command or its folder; all others lie in this machine."""


class StartRefusal(NamedTuple):
    """Why a command was not started."""

    is_job_fault: bool
    message: str
    path: str | None


def classify_start_error(error: Exception) -> StartRefusal:
    """Classify an error of `spawn` or `fork`; a ValueError is about the words of the command."""
    if isinstance(error, ValueError):
        return StartRefusal(is_job_fault=True, message=str(error), path=None)
    if not isinstance(error, OSError):
        message = f"{type(error).__name__}: {error}"
        return StartRefusal(is_job_fault=False, message=message, path=None)
    path = error.filename if isinstance(error.filename, str) else None
    return StartRefusal(error.errno in _JOB_FAULTS, error.strerror or str(error), path)
