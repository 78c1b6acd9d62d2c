"""The runner: hears what it is to run, and tells what came of it.

Called by `__main__`. One thread waits for the agent's messages, for output and for ends, and never
for one of them alone. The end of the connection is the end of the agent: all that runs is killed.
"""

from __future__ import annotations

import os
import time
import uuid
from functools import partial
from typing import TYPE_CHECKING, Final

from workron_runner import event_loop, memory, process_reaper, protocol, sandbox, spawn, workspace
from workron_runner.attempt import Attempt
from workron_runner.event_loop import EventLoop
from workron_runner.launcher import PendingStarts
from workron_runner.memory import MemoryWatch
from workron_runner.protocol import Kind, ProtocolError
from workron_runner.spawn import Launch
from workron_runner.supervisor import Supervisor
from workron_runner.workspace import Workspace, WorkspaceError, Workspaces

if TYPE_CHECKING:
    from workron_runner.connection import SocketLink
    from workron_runner.protocol import Frame, Message, Run
    from workron_runner.uids import Uids


_LAST_LOOK_SECONDS: Final = 5
_LAST_WORD_SECONDS: Final = 1


class Runner:
    """One connection to an agent, and all that it has this process run."""

    def __init__(
        self,
        link: SocketLink,
        *,
        is_isolating: bool = False,
        is_handing_down: bool = False,
        uids: Uids | None = None,
    ) -> None:
        """Make one; `is_handing_down` gives commands the environment of this process."""
        self._link = link
        self._is_handing_down = is_handing_down
        self._turns = EventLoop()
        self._starts = PendingStarts(sandbox.enter_landlock if is_isolating else None)
        self._uids = uids
        found = memory.find_memory()
        self._crowd = Supervisor(uids, MemoryWatch(found) if found else None, self._starts.coming)
        self._scratch: Workspaces | None = None
        self._why: str | None = None
        self._is_stopping = False
        self._next_tick = 0.0
        self._descriptor = link.fileno()
        self._turns.listen(self._descriptor, self._hear)
        self._turns.listen(self._starts.fileno(), self._started)

    def end_on(self, descriptor: int) -> None:
        """End as soon as this can be read."""
        self._turns.listen(descriptor, partial(self._told, descriptor))

    def run(self) -> str:
        """Run until the agent says goodbye or is gone, leave nothing behind, and say why."""
        while not self._is_stopping or len(self._crowd) or len(self._starts):
            calls = self._turns.wait(self._crowd.patience())
            # After a freeze this comes first: nothing that waits in the socket may prolong a life.
            self._crowd.look_at_clock()
            for call in calls:
                call()
            self._report()
            self._tick()
        self._leave()
        return self._why or "the agent is gone"

    def _hear(self) -> None:
        self._link.flush()
        try:
            for one in self._link.receive():
                self._obey(one)
        except ProtocolError as error:
            self._why = str(error)
            self._stop()
        if not self._link.is_open:
            self._stop()

    def _obey(self, one: Frame) -> None:
        message = protocol.decode(one.kind, one.payload)
        if self._scratch is None and not isinstance(message, protocol.Hello):
            raise ProtocolError(f"{type(message).__name__} came before Hello")
        self._follow(message)

    def _follow(self, message: Message) -> None:
        match message:
            case protocol.Hello():
                self._greet(message)
            case protocol.Run():
                self._start(message)
            case protocol.Kill() | protocol.Credit():
                # An attempt that is not there has ended, and that is on its way to the agent.
                if attempt := self._crowd.get(message.claim):
                    self._touch(attempt, message)
                elif start := self._starts.get(message.claim):
                    start.later.append(message)
            case protocol.Deadline(at):
                self._crowd.set_deadline(at)
            case protocol.Bye():
                self._stop()
            case _:
                raise ProtocolError(f"{type(message).__name__} is not for a runner")

    def _greet(self, hello: protocol.Hello) -> None:
        if hello.version != protocol.VERSION:
            raise ProtocolError(
                f"the agent speaks version {hello.version}, this runner {protocol.VERSION}: "
                "take both from the same release"
            )
        try:
            self._scratch = Workspaces(
                uuid.UUID(hello.boot),
                has_uids=self._uids is not None,
                is_handing_down=self._is_handing_down,
            )
        except (ValueError, WorkspaceError) as error:
            raise ProtocolError(str(error)) from None
        answer = protocol.Hello(protocol.VERSION, hello.boot, event_loop.clock_now())
        own = os.pidfd_open(os.getpid())
        self._link.send_with(protocol.encode(answer), own)
        os.close(own)

    def _start(self, order: Run) -> None:
        if self._crowd.get(order.claim) or self._starts.get(order.claim):
            raise ProtocolError(f"the claim {order.claim} runs already")
        if self._crowd.is_late and not order.outlives_deadline:
            self._say_no(order, "late", "the deadline has passed", None)
            return
        if self._is_stopping:
            self._say_no(order, "machine", "the runner is about to end", None)
            return
        assert self._scratch is not None
        try:
            place = self._place(order.inputs)
        except WorkspaceError as error:
            self._refuse(order, spawn.StartRefusal(False, str(error), None))  # noqa: FBT003
            return
        environment = self._scratch.environment(order.environment, place)
        launch = Launch(order.argv, place.within(order.workdir), environment, place.uid)
        try:
            self._starts.begin(order, place, launch)
        except OSError as error:
            self._give_up(order, place, error)

    def _started(self) -> None:
        for start, outcome in self._starts.arrived():
            if isinstance(outcome, Exception):
                self._give_up(start.order, start.place, outcome)
                continue
            self._crowd.enter(outcome, start.order.timeout)
            self._turns.listen(outcome.pipe, partial(self._pass_on, outcome))
            self._turns.listen(outcome.exit, partial(self._exited, outcome))
            for message in start.later:
                self._touch(outcome, message)
            if self._is_stopping:
                self._crowd.kill(outcome, 0)
        self._crowd.look_at_clock()

    def _give_up(self, order: Run, place: Workspace, error: Exception) -> None:
        why = spawn.start_refusal(error)
        if not place.directory.is_dir():
            why = spawn.StartRefusal(False, f"{place.directory} is gone", None)  # noqa: FBT003
        self._leave_place(place)
        self._refuse(order, why)

    def _place(self, inputs: str) -> Workspace:
        assert self._scratch is not None
        if self._uids is None:
            return self._scratch.place(inputs)
        uid = self._uids.draw()
        try:
            return self._scratch.place(inputs, uid)
        except WorkspaceError:
            self._uids.give_back(uid)
            raise

    def _leave_place(self, place: Workspace) -> None:
        assert self._scratch is not None
        self._scratch.leave(place)
        if self._uids is not None and place.uid is not None:
            self._uids.give_back(place.uid)

    def _refuse(self, order: Run, why: spawn.StartRefusal) -> None:
        self._say_no(order, "job" if why.is_fault_of_job else "machine", why.what, why.where)

    def _say_no(self, order: Run, fault: str, what: str, where: str | None) -> None:
        self._link.put(protocol.encode(protocol.Refused(order.claim, fault, what, where)))

    def _pass_on(self, attempt: Attempt) -> None:
        data = attempt.read()
        if data is None or attempt.is_paused:
            self._turns.ignore(attempt.pipe)
        if data and attempt.is_streamed:
            self._link.put(protocol.encode_bytes(Kind.OUTPUT, attempt.claim, data))

    def _touch(self, attempt: Attempt, message: protocol.Kill | protocol.Credit) -> None:
        if isinstance(message, protocol.Kill):
            self._crowd.kill(attempt, message.grace)
            return
        was_paused = attempt.is_paused
        attempt.add_credit(message.bytes)
        if was_paused and not attempt.is_paused:
            self._turns.listen(attempt.pipe, partial(self._pass_on, attempt))

    def _exited(self, attempt: Attempt) -> None:
        if self._crowd.exited(attempt):
            self._turns.ignore(attempt.exit)

    def _report(self) -> None:
        if self._crowd.is_ending:
            for attempt in self._crowd.over():
                self._tell(attempt)
        # All that was said in this turn goes together.
        self._link.flush()
        self._turns.also_write(self._descriptor, is_wanted=self._link.has_backlog)

    def _tick(self) -> None:
        now = event_loop.clock_now()
        if now >= self._next_tick:
            self._next_tick = now + event_loop.TICK_SECONDS
            self._crowd.look_after()

    def _tell(self, attempt: Attempt) -> None:
        self._turns.ignore(attempt.pipe)
        rest = attempt.read_rest()
        result, wrong = _result(attempt.place)
        attempt.close()
        self._starts.ended(attempt.mark)
        self._leave_place(attempt.place)
        parts = [
            (Kind.OUTPUT, rest if attempt.is_streamed else b""),
            (Kind.KEPT, attempt.kept),
            (Kind.RESULT, result),
        ]
        said = [protocol.encode_bytes(kind, attempt.claim, data) for kind, data in parts if data]
        self._link.put(b"".join([*said, protocol.encode(attempt.ended(wrong))]))

    def _told(self, descriptor: int) -> None:
        self._turns.ignore(descriptor)
        self._why = "the runner was asked to end by a signal"
        self._stop()

    def _stop(self) -> None:
        self._is_stopping = True
        self._turns.ignore(self._descriptor)
        self._crowd.kill_all()

    def _leave(self) -> None:
        until = event_loop.clock_now() + _LAST_LOOK_SECONDS
        while process_reaper.can_find_strays() and event_loop.clock_now() < until:
            self._crowd.look_after()
            time.sleep(0.001)
        if self._scratch is not None:
            self._scratch.close()
        self._turns.close()
        self._link.say_last(protocol.encode(protocol.Bye(self._why)), _LAST_WORD_SECONDS)
        self._starts.close()


def _result(place: Workspace) -> tuple[bytes, str | None]:
    try:
        return workspace.read_result(place.result, place.uid), None
    except workspace.ResultFileError as error:
        return b"", str(error)
