"""A runner that starts no process: each command has succeeded when the agent asks for it.

`bench.ours.null_worker` runs it in place of `workron_runner`, so that a measurement includes all of
a worker except its commands. It speaks docs/reference/runner-protocol.md and takes only the option
for the descriptor. It reads only the claim of a Start frame that it may answer at once.
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

_LAST_MESSAGE_TIMEOUT_SECONDS: Final = 1
_START: Final = int(FrameKind.START)
_START_PREFIX: Final = re.compile(rb'\{"claim": ?"([0-9a-f]{32})", ?"argv": ?\["')
"""The beginning of a Start as agents of this release write it; any other is decoded."""
_NO_CLAIM: Final = "0" * (2 * protocol.CLAIM_BYTES)


def _ended(claim: str) -> bytes:
    end = protocol.Ended(claim, "exit", 0, None, 0.0, 0.0, 0, 0, None)
    return protocol.encode(end)


# All claims have the same length, so frames that differ only in the claim have it too.
_BEFORE, _AFTER = _ended(_NO_CLAIM).split(_NO_CLAIM.encode())


class NullRunner:
    """One connection to an agent."""

    def __init__(self, connection: FrameConnection) -> None:
        self._connection = connection
        self._workspaces: Workspaces | None = None
        self._deadline = inf
        self._is_late = False
        self._is_stopping = False
        self._stop_reason: str | None = None

    def run(self) -> None:
        """Answer until the agent sends Shutdown or disconnects, and remove the folder."""
        poller = select.poll()
        while not self._is_stopping:
            wanted = select.POLLIN | (select.POLLOUT if self._connection.has_unsent else 0)
            poller.register(self._connection, wanted)
            poller.poll()
            self._receive()
        if self._workspaces is not None:
            self._workspaces.close()
        self._connection.send_and_close(
            protocol.encode(protocol.Shutdown(self._stop_reason)), _LAST_MESSAGE_TIMEOUT_SECONDS
        )

    def _receive(self) -> None:
        """Receive messages and answer them with one write."""
        self._is_late = event_loop.boottime() >= self._deadline
        try:
            for frame in self._connection.receive():
                self._connection.queue(self._answer(frame))
        except ProtocolError as error:
            self._stop_reason, self._is_stopping = str(error), True
        self._connection.flush()
        self._is_stopping = self._is_stopping or not self._connection.is_open

    def _answer(self, frame: Frame) -> bytes:
        if frame.kind == _START and self._workspaces is not None and not self._is_late:
            start = _START_PREFIX.match(frame.payload)
            if start is not None:
                return _BEFORE + start[1] + _AFTER
        message = protocol.decode(frame.kind, frame.payload)
        if self._workspaces is None and not isinstance(message, protocol.Hello):
            raise ProtocolError(f"{type(message).__name__} came before Hello")
        return self._handle(message)

    def _handle(self, message: protocol.Message) -> bytes:
        match message:
            case protocol.Hello():
                return self._answer_hello(message)
            case protocol.Start():
                return self._end(message)
            case protocol.Deadline(at):
                self._deadline, self._is_late = at, event_loop.boottime() >= at
            case protocol.Shutdown():
                self._is_stopping = True
            case protocol.Kill() | protocol.Credit():
                """The command has ended, and the agent has not read that yet."""
            case _:
                raise ProtocolError(f"{type(message).__name__} is not for a runner")
        return b""

    def _answer_hello(self, hello: protocol.Hello) -> bytes:
        if hello.version != protocol.VERSION:
            raise ProtocolError(f"the agent speaks version {hello.version}, not {protocol.VERSION}")
        try:
            self._workspaces = Workspaces(uuid.UUID(hello.boot))
        except (ValueError, WorkspaceError) as error:
            raise ProtocolError(str(error)) from None
        return protocol.encode(protocol.Hello(protocol.VERSION, hello.boot, event_loop.boottime()))

    def _end(self, start: protocol.Start) -> bytes:
        if self._is_late and not start.outlives_deadline:
            refused = protocol.Refused(start.claim, "late", "the deadline has passed", None)
            return protocol.encode(refused)
        return _ended(start.claim)


def main() -> None:
    """Serve one agent until it disconnects."""
    parser = argparse.ArgumentParser(
        "null_runner", description="Answers one agent without running commands."
    )
    parser.add_argument("--descriptor", type=int, required=True, help="a connected stream socket")
    NullRunner(FrameConnection(socket.socket(fileno=parser.parse_args().descriptor))).run()


if __name__ == "__main__":
    main()
