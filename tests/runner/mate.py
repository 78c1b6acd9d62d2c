"""An agent that a test holds in its hand: starts a runner and speaks to it frame by frame."""

import pathlib
import select
import signal
import socket
import subprocess
import sys
import uuid
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import workron_runner
from workron_runner import event_loop, protocol
from workron_runner.connection import FrameConnection
from workron_runner.protocol import Ended, FrameKind, Message, Refused

T = TypeVar("T")
HOME = pathlib.Path(workron_runner.__file__).parents[1]
COMMAND = [sys.executable, "-PSs", "-m", "workron_runner"]


def environment(tmp: pathlib.Path) -> dict[str, str]:
    return {"PATH": "/usr/local/bin:/usr/bin:/bin", "PYTHONPATH": str(HOME), "TMPDIR": str(tmp)}


def _entering(cgroup: pathlib.Path | None) -> list[str]:
    """Have what comes behind it run in a cgroup from its very start."""
    if cgroup is None:
        return []
    return ["sh", "-c", 'echo $$ >"$0" && exec "$@"', str(cgroup / "cgroup.procs")]


class Mate:
    """One runner and the socket to it."""

    def __init__(
        self,
        tmp: pathlib.Path,
        *options: str,
        within: pathlib.Path | None = None,
        command: Sequence[str] = COMMAND,
    ) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            self.child = subprocess.Popen(
                [*_entering(within), *command, "--descriptor", str(theirs.fileno()), *options],
                pass_fds=[theirs.fileno()],
                env=environment(tmp),
                start_new_session=True,
            )
        self.link = FrameConnection(ours)
        self.boot = uuid.uuid4()
        self.folder = tmp / f"workron-{self.boot.hex}"
        self.told: list[Message] = []
        self.output: dict[str, bytearray] = {}
        self.kept: dict[str, bytes] = {}
        self.results: dict[str, bytes] = {}

    def greet(self) -> None:
        self.say(protocol.Hello(protocol.VERSION, self.boot.hex, event_loop.boottime()))
        assert isinstance(self.hear(lambda: self.told[-1:])[0], protocol.Hello)

    def say(self, message: Message) -> None:
        self.link.send(protocol.encode(message))

    def run(self, command: str | Sequence[str], **fields: Any) -> str:
        argv = ["sh", "-c", command] if isinstance(command, str) else list(command)
        usual: dict[str, Any] = {
            "claim": uuid.uuid4().hex, "argv": argv, "environment": {}, "inputs": "{}",
            "output_limit_bytes": 1000, "window_bytes": 2**20, "workdir": None,
            "timeout": None, "grace": 0.05, "outlives_deadline": False,
        }  # fmt: skip
        order = protocol.Start(**usual | fields)
        self.output[order.claim] = bytearray()
        self.say(order)
        return order.claim

    def hear(self, enough: Callable[[], T]) -> T:
        """Take in what the runner says until that is true."""
        while not (answer := enough()):
            assert self.link.is_open, "the runner is gone"
            # What the runner has not had room for until now goes on meanwhile.
            select.select([self.link], [self.link] if self.link.has_unsent else [], [])
            self.link.flush()
            for one in self.link.receive():
                self._take(one.kind, one.payload)
        return answer

    def ended(self, claim: str) -> Ended:
        end = self.hear(lambda: [one for one in self.told if getattr(one, "claim", "") == claim])
        assert isinstance(end[0], Ended), end[0]
        return end[0]

    def refused(self, claim: str) -> Refused:
        end = self.hear(lambda: [one for one in self.told if getattr(one, "claim", "") == claim])
        assert isinstance(end[0], Refused), end[0]
        return end[0]

    def word(self, claim: str) -> bytes:
        """Wait for a whole line of output, and take it."""
        self.hear(lambda: b"\n" in self.output[claim])
        line, _, self.output[claim] = self.output[claim].partition(b"\n")
        return bytes(line)

    def farewell(self) -> protocol.Shutdown:
        """Wait for the runner's last word, and for its end."""
        self.hear(lambda: bool(self.told) and isinstance(self.told[-1], protocol.Shutdown))
        bye = self.told[-1]
        assert isinstance(bye, protocol.Shutdown)
        self.child.wait()
        return bye

    def close(self) -> None:
        self.child.send_signal(signal.SIGCONT)
        self.link.close()
        self.child.wait()

    def _take(self, kind: int, payload: bytes) -> None:
        if kind not in {FrameKind.OUTPUT, FrameKind.CAPTURED, FrameKind.RESULT}:
            self.told.append(protocol.decode(kind, payload))
            return
        claim, data = protocol.decode_bytes(payload)
        if kind == FrameKind.OUTPUT:
            self.output[claim] += data
        else:
            (self.kept if kind == FrameKind.CAPTURED else self.results)[claim] = data
