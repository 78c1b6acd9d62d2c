"""A runner as its agent sees it: frames to it, frames from it, and an end that can be waited for.

Made by `runner_process`, for a child of the agent, and by `runner_path`, for one that was started
elsewhere; used by `runner_executor`. What the runner says is heard on the agent's own loop, and is
not trusted: it runs other people's commands.
"""

from __future__ import annotations

import asyncio
import select
import time
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Final, Protocol

from workron_runner import limits, messages
from workron_runner.frame import ProtocolError
from workron_runner.messages import Bye, Hello, Kind

if TYPE_CHECKING:
    from collections.abc import Callable
    from uuid import UUID

    from workron_runner.frame import Frame
    from workron_runner.link import Link

GREETING_SECONDS: Final = 30
FAREWELL_SECONDS: Final = 10


class Runners(Protocol):
    """Where an executor has its runners from."""

    @property
    def are_awaited(self) -> bool:
        """Whether they come when they come, and not when one is asked for."""

    def begin(self, boot: UUID) -> RunnerLine:
        """Give one that has been greeted; StartError if there is none to be had."""

    def clear(self, boot: UUID) -> None:
        """End what a lost one left, where this process can reach it."""


class RunnerLine(ABC):
    """One runner, from its first word until it is gone."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_about_to_write = False
        self._hear: Callable[[Frame], None]
        self._lose: Callable[[str], object]
        self._why = "it is gone"

    @abstractmethod
    def bury(self) -> None:
        """Close the connection, whose end has it end all that it runs, and wait for its own end."""

    def attend(self, hear: Callable[[Frame], None], lose: Callable[[str], object]) -> None:
        """Listen to it on this loop; `lose` is told once why nothing more will be heard."""
        self._hear = hear
        self._lose = lose
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._link.fileno(), self._listen)
        self._write_soon()

    def send(self, frames: bytes) -> None:
        """Send without waiting, all that is said in one turn of the loop together."""
        self._link.put(frames)
        self._write_soon()

    def close(self) -> None:
        """Have it end everything, and return when it is gone."""
        self._say_goodbye()
        self.bury()

    def _say_goodbye(self) -> None:
        self._turn_away()
        self._link.say_last(messages.encode(Bye()), FAREWELL_SECONDS)

    def _write_soon(self) -> None:
        if self._loop is not None and not self._is_about_to_write:
            self._is_about_to_write = True
            self._loop.call_soon(self._write)

    def _write(self) -> None:
        self._is_about_to_write = False
        if self._loop is None:
            return
        self._link.flush()
        if self._link.has_backlog:
            self._loop.add_writer(self._link.fileno(), self._write)
        else:
            self._loop.remove_writer(self._link.fileno())

    def _listen(self) -> None:
        try:
            for one in self._link.receive():
                self._take(one)
        except ProtocolError as error:
            self._end(str(error))
        except Exception as error:  # noqa: BLE001 - what it says is not trusted, however it is wrong
            self._end(f"it cannot be understood: {type(error).__name__}: {error}")
        else:
            if not self._link.is_open:
                self._end(self._why)

    def _take(self, one: Frame) -> None:
        if one.kind == Kind.BYE:
            self._why = _why(one) or self._why
        else:
            self._hear(one)

    def _end(self, why: str) -> None:
        self._turn_away()
        self._lose(why)

    def _turn_away(self) -> None:
        loop, self._loop = self._loop, None
        if loop is not None and not loop.is_closed():
            loop.remove_reader(self._link.fileno())
            loop.remove_writer(self._link.fileno())

    def _look_at(self, link: Link) -> None:  # noqa: B027 - there need not be anything
        """See what comes with the first word."""

    def _greet(self, boot: UUID) -> None:
        sent_at = limits.now()
        self._link.send(messages.encode(Hello(messages.VERSION, boot.hex, sent_at)))
        hello = self._first_word()
        if isinstance(hello, Bye):
            raise ProtocolError(hello.why or "it said goodbye at once")
        if not isinstance(hello, Hello):
            raise ProtocolError(f"it began with {hello}")
        if hello.version != messages.VERSION:
            raise ProtocolError(f"it speaks version {hello.version}, not {messages.VERSION}")
        if not sent_at <= hello.clock <= limits.now():
            raise ProtocolError("it reads another CLOCK_BOOTTIME; is it in another time namespace?")

    def _first_word(self) -> messages.Message:
        until = time.monotonic() + GREETING_SECONDS
        poller = select.poll()
        poller.register(self._link, select.POLLIN)
        while (left := until - time.monotonic()) > 0 and self._link.is_open:
            poller.poll(left * 1000)
            self._look_at(self._link)
            for one in self._link.receive():
                return messages.decode(one.kind, one.payload)
        raise ProtocolError("it did not answer")


def _why(bye: Frame) -> str | None:
    message = messages.decode(bye.kind, bye.payload)
    assert isinstance(message, Bye)
    return message.why
