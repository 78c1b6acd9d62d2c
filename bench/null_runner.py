"""A runner that starts nothing: each command has ended, with exit code 0, when it is asked for.

Run by `bench.ours.null_worker` in the place of `workron_runner`, so that what is measured is all of
a worker but its commands. It speaks docs/reference/runner-protocol.md, and of the options takes the
descriptor alone; only, of an order that it may carry out it reads no more than the claim.
"""

from __future__ import annotations

import argparse
import re
import select
import socket
import uuid
from math import inf
from typing import Final

from workron_runner import limits, messages
from workron_runner.frame import Frame, ProtocolError
from workron_runner.link import Link
from workron_runner.messages import Kind
from workron_runner.scratch import Scratch, ScratchError

_LAST_WORD_SECONDS: Final = 1
_RUN: Final = int(Kind.RUN)
_ORDER: Final = re.compile(rb'\{"claim": ?"([0-9a-f]{32})", ?"argv": ?\["')
"""An order as agents of this release write it; any other is read as a whole."""
_NOBODY: Final = "0" * (2 * messages.CLAIM_BYTES)


def _ended(claim: str) -> bytes:
    end = messages.Ended(claim, "itself", 0, None, 0.0, 0.0, 0, 0, None)
    return messages.encode(end)


# Claims are all of one length, and so are the frames that differ in nothing else.
_BEFORE, _AFTER = _ended(_NOBODY).split(_NOBODY.encode())


class NullRunner:
    """One connection to an agent."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._scratch: Scratch | None = None
        self._deadline = inf
        self._is_late = False
        self._is_over = False
        self._why: str | None = None

    def run(self) -> None:
        """Answer until the agent says goodbye or is gone, and leave nothing behind."""
        poller = select.poll()
        while not self._is_over:
            wanted = select.POLLIN | (select.POLLOUT if self._link.has_backlog else 0)
            poller.register(self._link, wanted)
            poller.poll()
            self._turn()
        if self._scratch is not None:
            self._scratch.close()
        self._link.say_last(messages.encode(messages.Bye(self._why)), _LAST_WORD_SECONDS)

    def _turn(self) -> None:
        """Take in all that came, and answer it together."""
        self._is_late = limits.now() >= self._deadline
        try:
            for one in self._link.receive():
                self._link.put(self._answer(one))
        except ProtocolError as error:
            self._why, self._is_over = str(error), True
        self._link.flush()
        self._is_over = self._is_over or not self._link.is_open

    def _answer(self, one: Frame) -> bytes:
        if one.kind == _RUN and self._scratch is not None and not self._is_late:
            order = _ORDER.match(one.payload)
            if order is not None:
                return _BEFORE + order[1] + _AFTER
        message = messages.decode(one.kind, one.payload)
        if self._scratch is None and not isinstance(message, messages.Hello):
            raise ProtocolError(f"{type(message).__name__} came before Hello")
        return self._follow(message)

    def _follow(self, message: messages.Message) -> bytes:
        match message:
            case messages.Hello():
                return self._greet(message)
            case messages.Run():
                return self._end(message)
            case messages.Deadline(at):
                self._deadline, self._is_late = at, limits.now() >= at
            case messages.Bye():
                self._is_over = True
            case messages.Kill() | messages.Credit():
                """What is meant has ended, and that is on its way to the agent."""
            case _:
                raise ProtocolError(f"{type(message).__name__} is not for a runner")
        return b""

    def _greet(self, hello: messages.Hello) -> bytes:
        if hello.version != messages.VERSION:
            raise ProtocolError(f"the agent speaks version {hello.version}, not {messages.VERSION}")
        try:
            self._scratch = Scratch(uuid.UUID(hello.boot))
        except (ValueError, ScratchError) as error:
            raise ProtocolError(str(error)) from None
        return messages.encode(messages.Hello(messages.VERSION, hello.boot, limits.now()))

    def _end(self, order: messages.Run) -> bytes:
        if self._is_late and not order.outlives_deadline:
            why = messages.Refused(order.claim, "late", "the deadline has passed", None)
            return messages.encode(why)
        return _ended(order.claim)


def main() -> None:
    """Run for one agent, until it is gone."""
    parser = argparse.ArgumentParser("null_runner", description="Runs nothing for one agent.")
    parser.add_argument("--descriptor", type=int, required=True, help="a connected stream socket")
    NullRunner(Link(socket.socket(fileno=parser.parse_args().descriptor))).run()


if __name__ == "__main__":
    main()
