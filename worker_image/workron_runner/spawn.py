"""Starts commands: by `posix_spawn`, in a session of their own, on a thread that does only this.

Called by `runner`. `posix_spawn` shares the memory of the runner until the command is loaded, so
it costs the same however large that is, which a fork does not. It knows no folder to start in: the
whole process goes there for the moment, which is safe as nothing else in it uses a relative path.
"""

from __future__ import annotations

import errno
import os
import queue
import signal
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from workron_runner import fork

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_HOME: Final = "/"
# Python ignores some signals, and a program that inherits that would not notice a closed pipe.
_IGNORED_BY_PYTHON: Final = (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT)


@dataclass(frozen=True, slots=True)
class Launch:
    """What to start, where, and what it sees."""

    argv: list[str]
    directory: str
    environment: Mapping[str, str]
    uid: int | None = None
    """Whom it is to be; None: whom the runner is."""


class Hand:
    """A thread that starts commands, so that they are its children and not the first thread's.

    It may prepare itself first, in a way that its commands inherit; if that fails, the start does.
    """

    def __init__(self, prepare: Callable[[], None] | None = None) -> None:
        self._prepare = prepare
        self._orders: queue.SimpleQueue[tuple[Launch, int] | None] = queue.SimpleQueue()
        self._answers: queue.SimpleQueue[int | Exception] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="hand", daemon=True)
        self._thread.start()

    def start(self, launch: Launch, output: int) -> int:
        """Start a command that writes to that descriptor; OSError, ValueError: not started."""
        self._orders.put((launch, output))
        answer = self._answers.get()
        if isinstance(answer, Exception):
            raise answer
        return answer

    def close(self) -> None:
        """End the thread; its commands would become children of the first one."""
        self._orders.put(None)
        self._thread.join()

    def _work(self) -> None:
        while (order := self._orders.get()) is not None:
            try:
                if self._prepare:
                    self._prepare()
                self._answers.put(_start(*order))
            except Exception as error:  # noqa: BLE001 - whoever asked for it gets it, and judges it
                self._answers.put(error)


class Hands:
    """Gives each command its hand: all the same one, or each its own, where it has to prepare."""

    def __init__(self, prepare: Callable[[], None] | None) -> None:
        self._prepare = prepare
        self._shared = Hand() if prepare is None else None
        self._own: dict[int, Hand] = {}

    def start(self, launch: Launch, output: int) -> int:
        """Start a command, as a hand does."""
        if self._shared is not None:
            return self._shared.start(launch, output)
        try:
            hand = Hand(self._prepare)
        except RuntimeError as error:
            raise OSError(errno.EAGAIN, str(error)) from None
        try:
            pid = hand.start(launch, output)
        except Exception:
            hand.close()
            raise
        self._own[pid] = hand
        return pid

    def done(self, pid: int) -> None:
        """Let the hand of a command go, if it had one of its own; it has ended."""
        if hand := self._own.pop(pid, None):
            hand.close()

    def close(self) -> None:
        """Let all go."""
        for hand in [*self._own.values(), *([self._shared] if self._shared else [])]:
            hand.close()


def _start(launch: Launch, output: int) -> int:
    os.chdir(launch.directory)
    try:
        program = _find(launch.argv[0], launch.environment.get("PATH", os.defpath))
        if launch.uid is not None:
            return fork.start(program, launch.argv, launch.environment, launch.uid, output)
        return os.posix_spawn(
            program,
            launch.argv,
            launch.environment,
            file_actions=(
                (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                (os.POSIX_SPAWN_DUP2, output, 1),
                (os.POSIX_SPAWN_DUP2, output, 2),
            ),
            setsid=True,
            setsigmask=(),
            setsigdef=_IGNORED_BY_PYTHON,
        )
    finally:
        os.chdir(_HOME)


def _find(word: str, path: str) -> str:
    """Find a program as a shell would, on the PATH that it will have itself."""
    if "/" in word:
        return word
    for folder in path.split(os.pathsep):
        candidate = os.path.join(folder, word)  # noqa: PTH118 - half the time, at every start
        if os.access(candidate, os.X_OK) and not os.path.isdir(candidate):  # noqa: PTH112
            return candidate
    raise OSError(errno.ENOENT, os.strerror(errno.ENOENT), word)
