"""Threads that nobody waits for when the process ends.

asyncio asks for addresses on threads of its default executor, and its end and Python's wait for
them. A name server that does not answer would so hold up a process that is to end by a time. Set by
`service`.
"""

from __future__ import annotations

import threading
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, ParamSpec, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

_P = ParamSpec("_P")
_T = TypeVar("_T")


class Daemons(ThreadPoolExecutor):
    """Runs each call on a thread of its own; who calls gives up by itself, so there are few."""

    def submit(self, call: Callable[_P, _T], /, *args: _P.args, **named: _P.kwargs) -> Future[_T]:
        """Run a call."""
        future: Future[_T] = Future()

        def run() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                future.set_result(call(*args, **named))
            except BaseException as error:  # noqa: BLE001 - whoever waits for it gets it
                future.set_exception(error)

        threading.Thread(target=run, daemon=True).start()
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Wait for none."""
