"""A runner that starts no process: each command has succeeded when the agent asks for it.

`bench.ours.null_worker` runs it in place of `workron_runner`, so that a measurement includes all of
a worker except its commands. It speaks docs/reference/runner-protocol.md and takes only the option
for the descriptor. Of a Run frame that it may answer at once it reads only the claim.
"""

from __future__ import annotations

import argparse
import re
import select
import socket
import uuid
from math import inf
from typing import Final

from workron_runner import event_loop, protocol
from workron_runner.connection import FrameConnection
from workron_runner.protocol import Frame, FrameKind, ProtocolError
from workron_runner.workspace import WorkspaceError, Workspaces

_LAST_WORD_SECONDS: Final = 1
_RUN: Final = int(FrameKind.START)
_ORDER: Final = re.compile(rb'\{"claim": ?"([0-9a-f]{32})", ?"argv": ?\["')
"""An order as agents of this release write it; any other is read as a whole."""
_NOBODY: Final = "0" * (2 * protocol.CLAIM_BYTES)


def _ended(claim: str) -> bytes:
    end = protocol.Ended(claim, "exit", 0, None, 0.0, 0.0, 0, 0, None)
    return protocol.encode(end)


# Claims are all of one length, and so are the frames that differ in nothing else.
_BEFORE, _AFTER = _ended(_NOBODY).split(_NOBODY.encode())


class NullRunner:
    """One connection to an agent."""

    def __init__(self, link: FrameConnection) -> None:
        self._link = link
        self._scratch: Workspaces | None = None
        self._deadline = inf
        self._is_late = False
        self._is_over = False
        self._why: str | None = None

    def run(self) -> None:
        """Answer until the agent says goodbye or is gone, and leave nothing behind."""
        poller = select.poll()
        while not self._is_over:
            wanted = select.POLLIN | (select.POLLOUT if self._link.has_unsent else 0)
            poller.register(self._link, wanted)
            poller.poll()
            self._turn()
        if self._scratch is not None:
            self._scratch.close()
        self._link.send_and_close(protocol.encode(protocol.Shutdown(self._why)), _LAST_WORD_SECONDS)

    def _turn(self) -> None:
        """Take in all that came, and answer it together."""
        self._is_late = event_loop.boottime() >= self._deadline
        try:
            for one in self._link.receive():
                self._link.queue(self._answer(one))
        except ProtocolError as error:
            self._why, self._is_over = str(error), True
        self._link.flush()
        self._is_over = self._is_over or not self._link.is_open

    def _answer(self, one: Frame) -> bytes:
        if one.kind == _RUN and self._scratch is not None and not self._is_late:
            order = _ORDER.match(one.payload)
            if order is not None:
                return _BEFORE + order[1] + _AFTER
        message = protocol.decode(one.kind, one.payload)
        if self._scratch is None and not isinstance(message, protocol.Hello):
            raise ProtocolError(f"{type(message).__name__} came before Hello")
        return self._follow(message)

    def _follow(self, message: protocol.Message) -> bytes:
        match message:
            case protocol.Hello():
                return self._greet(message)
            case protocol.Start():
                return self._end(message)
            case protocol.Deadline(at):
                self._deadline, self._is_late = at, event_loop.boottime() >= at
            case protocol.Shutdown():
                self._is_over = True
            case protocol.Kill() | protocol.Credit():
                """What is meant has ended, and that is on its way to the agent."""
            case _:
                raise ProtocolError(f"{type(message).__name__} is not for a runner")
        return b""

    def _greet(self, hello: protocol.Hello) -> bytes:
        if hello.version != protocol.VERSION:
            raise ProtocolError(f"the agent speaks version {hello.version}, not {protocol.VERSION}")
        try:
            self._scratch = Workspaces(uuid.UUID(hello.boot))
        except (ValueError, WorkspaceError) as error:
            raise ProtocolError(str(error)) from None
        return protocol.encode(protocol.Hello(protocol.VERSION, hello.boot, event_loop.boottime()))

    def _end(self, order: protocol.Start) -> bytes:
        if self._is_late and not order.outlives_deadline:
            why = protocol.Refused(order.claim, "late", "the deadline has passed", None)
            return protocol.encode(why)
        return _ended(order.claim)


def main() -> None:
    """Run for one agent, until it is gone."""
    parser = argparse.ArgumentParser("null_runner", description="Runs nothing for one agent.")
    parser.add_argument("--descriptor", type=int, required=True, help="a connected stream socket")
    NullRunner(FrameConnection(socket.socket(fileno=parser.parse_args().descriptor))).run()


if __name__ == "__main__":
    main()
