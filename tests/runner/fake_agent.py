"""An agent that starts a runner and exchanges messages with it, as a test directs."""

import pathlib
import select
import signal
import socket
import subprocess
import sys
import uuid
from collections.abc import Callable, Sequence
from typing import Any, Self, TypeVar

import workron_runner
from workron_runner import event_loop, protocol
from workron_runner.connection import FrameConnection
from workron_runner.protocol import Ended, FrameKind, Message, Refused

T = TypeVar("T")
HOME = pathlib.Path(workron_runner.__file__).parents[1]
COMMAND = [sys.executable, "-PSs", "-m", "workron_runner"]


def environment(tmp: pathlib.Path) -> dict[str, str]:
    return {"PATH": "/usr/local/bin:/usr/bin:/bin", "PYTHONPATH": str(HOME), "TMPDIR": str(tmp)}


def _in_cgroup(cgroup: pathlib.Path | None) -> list[str]:
    """Return a command that moves itself into a cgroup and executes its arguments."""
    if cgroup is None:
        return []
    return ["sh", "-c", 'echo $$ >"$0" && exec "$@"', str(cgroup / "cgroup.procs")]


class FakeAgent:
    """A runner in a process of its own, and the connection to it."""

    def __init__(
        self,
        tmp: pathlib.Path,
        *options: str,
        cgroup: pathlib.Path | None = None,
        command: Sequence[str] = COMMAND,
    ) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            self.child = subprocess.Popen(
                [*_in_cgroup(cgroup), *command, "--descriptor", str(theirs.fileno()), *options],
                pass_fds=[theirs.fileno()],
                env=environment(tmp),
                start_new_session=True,
            )
        self.connection = FrameConnection(ours)
        self.boot = uuid.uuid4()
        self.folder = tmp / f"workron-{self.boot.hex}"
        self.messages: list[Message] = []
        self.output: dict[str, bytearray] = {}
        self.captured: dict[str, bytes] = {}
        self.results: dict[str, bytes] = {}

    def __enter__(self) -> Self:
        self.say_hello()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def say_hello(self) -> None:
        self.send(protocol.Hello(protocol.VERSION, self.boot.hex, event_loop.boottime()))
        assert isinstance(self.receive_until(lambda: self.messages[-1:])[0], protocol.Hello)

    def send(self, message: Message) -> None:
        self.connection.send(protocol.encode(message))

    def run(self, command: str | Sequence[str], **fields: Any) -> str:
        """Send Start and return the claim; a string is run by a shell."""
        argv = ["sh", "-c", command] if isinstance(command, str) else list(command)
        defaults: dict[str, Any] = {
            "claim": uuid.uuid4().hex, "argv": argv, "environment": {}, "inputs": "{}",
            "output_limit_bytes": 1000, "window_bytes": 2**20, "workdir": None,
            "timeout": None, "grace": 0.05, "outlives_deadline": False,
        }  # fmt: skip
        start = protocol.Start(**defaults | fields)
        self.output[start.claim] = bytearray()
        self.send(start)
        return start.claim

    def receive_until(self, condition: Callable[[], T]) -> T:
        """Receive messages until the condition is true, and return its value."""
        while not (value := condition()):
            assert self.connection.is_open, "the runner has disconnected"
            writers = [self.connection] if self.connection.has_unsent else []
            select.select([self.connection], writers, [])
            self.connection.flush()
            for frame in self.connection.receive():
                self._handle(frame.kind, frame.payload)
        return value

    def ended(self, claim: str) -> Ended:
        last = self._last_message(claim)
        assert isinstance(last, Ended), last
        return last

    def refused(self, claim: str) -> Refused:
        last = self._last_message(claim)
        assert isinstance(last, Refused), last
        return last

    def read_line(self, claim: str) -> bytes:
        """Receive a whole line of output and remove it from the output."""
        self.receive_until(lambda: b"\n" in self.output[claim])
        line, _, self.output[claim] = self.output[claim].partition(b"\n")
        return bytes(line)

    def wait_for_shutdown(self) -> protocol.Shutdown:
        """Receive the runner's last message and wait until it has exited."""
        self.receive_until(
            lambda: any(isinstance(m, protocol.Shutdown) for m in self.messages[-1:])
        )
        shutdown = self.messages[-1]
        assert isinstance(shutdown, protocol.Shutdown)
        self.child.wait()
        return shutdown

    def close(self) -> None:
        self.child.send_signal(signal.SIGCONT)
        self.connection.close()
        self.child.wait()

    def _last_message(self, claim: str) -> Message:
        return self.receive_until(
            lambda: [one for one in self.messages if getattr(one, "claim", "") == claim]
        )[0]

    def _handle(self, kind: int, payload: bytes) -> None:
        if kind not in {FrameKind.OUTPUT, FrameKind.CAPTURED, FrameKind.RESULT}:
            self.messages.append(protocol.decode(kind, payload))
            return
        claim, data = protocol.decode_bytes(payload)
        if kind == FrameKind.OUTPUT:
            self.output[claim] += data
        else:
            (self.captured if kind == FrameKind.CAPTURED else self.results)[claim] = data
