"""The runner: receives messages from its agent, runs commands, and reports how they ended.

One thread polls the connection, output pipes, pidfds and finished starts, and blocks on none of
them. When the connection ends, the agent is gone: every command is killed.
"""

from __future__ import annotations

import os
import time
import uuid
from functools import partial
from typing import Final

from workron_runner import event_loop, memory, process_reaper, protocol, sandbox, spawn, workspace
from workron_runner.attempt import AttemptProcess
from workron_runner.connection import FrameConnection
from workron_runner.event_loop import EventLoop
from workron_runner.launcher import Launcher
from workron_runner.memory import MemoryMonitor
from workron_runner.protocol import FrameKind, Message, ProtocolError, Start
from workron_runner.sandbox import TerminationSignals
from workron_runner.spawn import Launch
from workron_runner.supervisor import Supervisor
from workron_runner.uids import UidPool
from workron_runner.workspace import Workspace, WorkspaceError, Workspaces

_LEFTOVER_TIMEOUT_SECONDS: Final = 5
_LAST_MESSAGE_TIMEOUT_SECONDS: Final = 1


class Runner:
    """One agent's connection, and everything that it has this process run."""

    def __init__(
        self,
        connection: FrameConnection,
        termination: TerminationSignals,
        *,
        is_isolating: bool = False,
        inherits_environment: bool = False,
        uids: UidPool | None = None,
    ) -> None:
        self._connection = connection
        self._inherits_environment = inherits_environment
        self._uids = uids
        self._loop = EventLoop()
        self._launcher = Launcher(sandbox.enter_landlock if is_isolating else None)
        limited = memory.find_memory()
        self._supervisor = Supervisor(
            uids, MemoryMonitor(limited) if limited else None, self._launcher.starting_tags
        )
        self._workspaces: Workspaces | None = None
        self._stop_reason: str | None = None
        self._is_stopping = False
        self._next_leftover_check = 0.0
        self._descriptor = connection.fileno()
        self._loop.add_reader(self._descriptor, self._receive)
        self._loop.add_reader(self._launcher.fileno(), self._finish_starts)
        self._loop.add_reader(termination.fileno(), partial(self._signalled, termination))

    def run(self) -> str:
        """Run until the agent sends Shutdown or disconnects; return the reason."""
        while not self._is_stopping or len(self._supervisor) or len(self._launcher):
            callbacks = self._loop.poll(self._supervisor.poll_timeout())
            # First, because this process may have been frozen: messages that wait in the socket
            # must not extend a deadline that has passed.
            self._supervisor.check_timers()
            for callback in callbacks:
                callback()
            self._report_ended()
            self._check_leftovers()
        self._close()
        return self._stop_reason or "the agent has disconnected"

    def _receive(self) -> None:
        self._connection.flush()
        try:
            for frame in self._connection.receive():
                self._handle(protocol.decode(frame.kind, frame.payload))
        except ProtocolError as error:
            self._stop_reason = str(error)
            self._stop()
        if not self._connection.is_open:
            self._stop()

    def _handle(self, message: Message) -> None:
        if self._workspaces is None and not isinstance(message, protocol.Hello):
            raise ProtocolError(f"{type(message).__name__} came before Hello")
        match message:
            case protocol.Hello():
                self._answer_hello(message)
            case protocol.Start():
                self._start(message)
            case protocol.Kill() | protocol.Credit():
                self._apply(message)
            case protocol.Deadline(at):
                self._supervisor.set_deadline(at)
            case protocol.Shutdown():
                self._stop()
            case _:
                raise ProtocolError(f"a runner takes no {type(message).__name__}")

    def _answer_hello(self, hello: protocol.Hello) -> None:
        if hello.version != protocol.VERSION:
            raise ProtocolError(
                f"the agent speaks version {hello.version}, this runner {protocol.VERSION}: "
                "take both from the same release"
            )
        try:
            self._workspaces = Workspaces(
                uuid.UUID(hello.boot),
                has_uids=self._uids is not None,
                inherits_environment=self._inherits_environment,
            )
        except (ValueError, WorkspaceError) as error:
            raise ProtocolError(str(error)) from None
        answer = protocol.Hello(protocol.VERSION, hello.boot, event_loop.boottime())
        # The agent waits on this descriptor for the end of this process.
        own = os.pidfd_open(os.getpid())
        self._connection.send_descriptor(protocol.encode(answer), own)
        os.close(own)

    def _start(self, request: Start) -> None:
        if self._supervisor.get(request.claim) or self._launcher.get(request.claim):
            raise ProtocolError(f"claim {request.claim} is running already")
        if self._supervisor.is_past_deadline and not request.outlives_deadline:
            self._refuse(request, "late", "the deadline has passed")
            return
        if self._is_stopping:
            self._refuse(request, "machine", "the runner is shutting down")
            return
        assert self._workspaces is not None
        uid = None
        try:
            uid = None if self._uids is None else self._uids.acquire()
            workspace = self._workspaces.acquire(request.inputs, uid)
        except WorkspaceError as error:
            self._release_uid(uid)
            self._refuse(request, "machine", str(error))
            return
        environment = self._workspaces.environment(request.environment, workspace)
        # A relative `workdir` is inside the attempt's folder.
        directory = str(workspace.directory / (request.workdir or ""))
        launch = Launch(request.argv, directory, environment, workspace.uid)
        try:
            self._launcher.begin(request, workspace, launch)
        except OSError as error:
            self._start_failed(request, workspace, error)

    def _finish_starts(self) -> None:
        for start, outcome in self._launcher.finished():
            if isinstance(outcome, Exception):
                self._start_failed(start.request, start.workspace, outcome)
                continue
            self._supervisor.add(outcome, start.request.timeout)
            self._loop.add_reader(outcome.pipe, partial(self._forward_output, outcome))
            self._loop.add_reader(outcome.pidfd, partial(self._command_exited, outcome))
            for message in start.later:
                self._apply(message)
            if self._is_stopping:
                self._supervisor.kill(outcome, 0)
        self._supervisor.check_timers()

    def _start_failed(self, request: Start, workspace: Workspace, error: Exception) -> None:
        if workspace.directory.is_dir():
            self._refuse(request, *spawn.classify_start_error(error))
        else:
            self._refuse(request, "machine", f"{workspace.directory} was removed")
        self._release_workspace(workspace)

    def _release_workspace(self, workspace: Workspace) -> None:
        assert self._workspaces is not None
        self._workspaces.release(workspace)
        self._release_uid(workspace.uid)

    def _release_uid(self, uid: int | None) -> None:
        if self._uids is not None and uid is not None:
            self._uids.release(uid)

    def _refuse(self, request: Start, fault: str, message: str, path: str | None = None) -> None:
        refused = protocol.Refused(request.claim, fault, message, path)
        self._connection.queue(protocol.encode(refused))

    def _forward_output(self, attempt: AttemptProcess) -> None:
        data = attempt.read()
        if data is None or attempt.is_paused:
            self._loop.remove_reader(attempt.pipe)
        if data and attempt.is_streamed:
            self._connection.queue(protocol.encode_bytes(FrameKind.OUTPUT, attempt.claim, data))

    def _apply(self, message: protocol.Kill | protocol.Credit) -> None:
        attempt = self._supervisor.get(message.claim)
        if attempt is None:
            # An unknown claim has ended, and the agent has not read that yet.
            if start := self._launcher.get(message.claim):
                start.later.append(message)
        elif isinstance(message, protocol.Kill):
            self._supervisor.kill(attempt, message.grace)
        else:
            was_paused = attempt.is_paused
            attempt.credit += message.bytes
            if was_paused and not attempt.is_paused:
                self._loop.add_reader(attempt.pipe, partial(self._forward_output, attempt))

    def _command_exited(self, attempt: AttemptProcess) -> None:
        if self._supervisor.command_exited(attempt):
            self._loop.remove_reader(attempt.pidfd)

    def _report_ended(self) -> None:
        for attempt in self._supervisor.take_ended():
            self._report(attempt)
        # One write for everything that was queued in this iteration.
        self._connection.flush()
        self._loop.set_writable_wanted(self._descriptor, is_wanted=self._connection.has_unsent)

    def _report(self, attempt: AttemptProcess) -> None:
        self._loop.remove_reader(attempt.pipe)
        rest = attempt.read_rest()
        result, result_error = b"", None
        try:
            result = workspace.read_result(attempt.workspace.result, attempt.workspace.uid)
        except workspace.ResultFileError as error:
            result_error = str(error)
        attempt.close()
        self._launcher.release(attempt.tag)
        self._release_workspace(attempt.workspace)
        captured, omitted_bytes = attempt.captured.value()
        parts = [
            (FrameKind.OUTPUT, rest if attempt.is_streamed else b""),
            (FrameKind.CAPTURED, captured),
            (FrameKind.RESULT, result),
        ]
        for kind, data in parts:
            if data:
                self._connection.queue(protocol.encode_bytes(kind, attempt.claim, data))
        self._connection.queue(protocol.encode(attempt.ended(omitted_bytes, result_error)))

    def _check_leftovers(self) -> None:
        now = event_loop.boottime()
        if now >= self._next_leftover_check:
            self._next_leftover_check = now + event_loop.CHECK_INTERVAL_SECONDS
            self._supervisor.kill_leftovers()

    def _signalled(self, termination: TerminationSignals) -> None:
        if termination.is_requested():
            self._loop.remove_reader(termination.fileno())
            self._stop_reason = "the runner was asked to end by a signal"
            self._stop()

    def _stop(self) -> None:
        self._is_stopping = True
        self._loop.remove_reader(self._descriptor)
        self._supervisor.kill_all()

    def _close(self) -> None:
        until = event_loop.boottime() + _LEFTOVER_TIMEOUT_SECONDS
        while process_reaper.has_leftover_processes() and event_loop.boottime() < until:
            self._supervisor.kill_leftovers()
            time.sleep(0.001)
        if self._workspaces is not None:
            self._workspaces.close()
        self._loop.close()
        shutdown = protocol.Shutdown(self._stop_reason)
        self._connection.send_and_close(protocol.encode(shutdown), _LAST_MESSAGE_TIMEOUT_SECONDS)
        self._launcher.close()
