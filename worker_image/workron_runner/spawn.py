"""Starts one command in a session of its own, in its folder, on a launcher thread.

`spawn` calls `posix_spawn` of the C library: it shares the runner's memory until the command is
executed, so its cost does not grow with the runner as that of a fork does, and, unlike Python's own
`os.posix_spawn`, it lets other threads run meanwhile and can change the folder. `fork` is for
commands of another uid, which `posix_spawn` cannot set.

A command starts with every signal at its default and none blocked, whatever the runner inherited.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

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
    program = _find_program(launch)
    pid = ctypes.c_int()
    with _file_actions(_encode(launch.directory), output) as actions:
        number = _LIBRARY.posix_spawn(
            ctypes.byref(pid),
            os.fsencode(program),
            actions,
            _ATTRIBUTES,
            _string_array(launch.argv),
            _string_array([f"{name}={value}" for name, value in launch.environment.items()]),
        )
    if number:
        # The C library does not say which of the two caused the error.
        is_directory = os.path.isdir(launch.directory)  # noqa: PTH112 - half the time
        path = program if is_directory else launch.directory
        raise OSError(number, os.strerror(number), path)
    return pid.value


def fork(launch: Launch, uid: int, output: int) -> int:
    """Start a command as another uid, without extra groups; raises like `spawn`.

    Python resets SIGPIPE and SIGXFSZ, `sandbox.prepare_process` sees to every other signal that
    was ignored, and this thread unblocks them all.
    """
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    child = subprocess.Popen(  # noqa: S603 - executing commands is what the runner is for
        launch.argv,
        executable=_find_program(launch),
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


@contextlib.contextmanager
def _file_actions(directory: bytes, output: int) -> Iterator[ctypes.Array[ctypes.c_char]]:
    """Provide the actions in the child before exec; allocates before the child exists."""
    actions = ctypes.create_string_buffer(_STRUCT_BYTES)
    _check(_LIBRARY.posix_spawn_file_actions_init(actions))
    try:
        _check(_LIBRARY.posix_spawn_file_actions_addopen(actions, 0, b"/dev/null", os.O_RDONLY, 0))
        _check(_LIBRARY.posix_spawn_file_actions_adddup2(actions, output, 1))
        _check(_LIBRARY.posix_spawn_file_actions_adddup2(actions, output, 2))
        _check(_LIBRARY.posix_spawn_file_actions_addchdir_np(actions, directory))
        yield actions
    finally:
        _LIBRARY.posix_spawn_file_actions_destroy(actions)


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


def _find_program(launch: Launch) -> str:
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
                if len(_PROGRAMS) >= _MAX_CACHED_PROGRAMS:
                    _PROGRAMS.clear()
                _PROGRAMS[path, word] = found
            return found
    raise OSError(errno.ENOENT, os.strerror(errno.ENOENT), word)


_ATTRIBUTES: Final = _attributes()

_JOB_FAULTS: Final = {
    errno.E2BIG, errno.EACCES, errno.EISDIR, errno.ELOOP, errno.ENAMETOOLONG, errno.ENOENT,
    errno.ENOEXEC, errno.ENOTDIR,
}  # fmt: skip
"""Errors that lie in the command or its folder; all others lie in this machine."""


def classify_start_error(error: Exception) -> tuple[str, str, str | None]:
    """Return fault, message and path of a refused start; a ValueError is about the words of it."""
    if isinstance(error, OSError):
        fault = "job" if error.errno in _JOB_FAULTS else "machine"
        path = error.filename if isinstance(error.filename, str) else None
        return fault, error.strerror or str(error), path
    if isinstance(error, ValueError):
        return "job", str(error), None
    return "machine", f"{type(error).__name__}: {error}", None
