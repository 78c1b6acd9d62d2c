"""Two containers that share what those of a pod share: the file of the runner, and its socket.

What a kubelet does when a container of a pod has ended is done by the test: a new one in its place,
on the same volumes.
"""

import uuid

from e2e import containers
from e2e.containers import GROUP, HARD, Container, Containers
from e2e.store import Store

_CODE, _DOOR, _ROOM = "/code", "/door", "/room"
_FILE = f"{_CODE}/runner.pyz"
_SOCKET = f"{_DOOR}/runner"
_TOGETHER = ("--user", "65532:65532", "--group-add", str(GROUP))


class Pod:
    """An agent of our image, and a runner on any image that has a Python."""

    def __init__(self, crew: Containers, store: Store) -> None:
        self.uid = str(uuid.uuid4())
        self._crew = crew
        self._store = store
        self._code, self._door, self._room = (crew.volume() for _ in range(3))
        options = (*HARD, *_TOGETHER, *_mounted(self._code, _CODE))
        said = crew.run("python3", "-m", "workron_runner.pack", _FILE, options=options)
        assert said.returncode == 0, said.stderr

    def runner(self, *words: str) -> Container:
        """Start the runner."""
        options = (
            "--entrypoint", "python3", *_TOGETHER, "--env", f"TMPDIR={_ROOM}",
            *_mounted(self._code, f"{_CODE}:ro"), *_mounted(self._door, _DOOR),
            *_mounted(self._room, _ROOM),
        )  # fmt: skip
        command = ("-IS", _FILE, "--socket", _SOCKET, *words)
        return self._crew.start(*command, options=options, image=containers.base())

    def agent(self, *words: object) -> Container:
        """Start the agent."""
        values = (
            f"WORKRON_STORE={self._store.url_inside}", f"WORKRON_TOKEN={self._store.token}",
            f"WORKRON_POD_UID={self.uid}", f"WORKRON_RUNNER={_SOCKET}",
        )  # fmt: skip
        settings = tuple(word for value in values for word in ("--env", value))
        options = (*_TOGETHER, *settings, *_mounted(self._door, _DOOR))
        command = ("worker", "--slots", 4, "--health", "127.0.0.1:8080", *words)
        return self._crew.start(*command, socket=self._store.socket, options=options)

    def room(self) -> list[str]:
        """List what commands and runners have left behind."""
        options = ("--user", "0", *_mounted(self._room, _ROOM))
        return self._crew.run("ls", "-A", _ROOM, options=options).stdout.split()


def _mounted(volume: str, place: str) -> tuple[str, str]:
    return "--volume", f"{volume}:{place}"
