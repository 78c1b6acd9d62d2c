"""Agent and runner in two containers that share volumes as the containers of a pod do.

The test acts as the kubelet: when a container has ended, it starts a new one on the same volumes.
"""

import uuid

from e2e import containers
from e2e.containers import POD_GROUP, RESTRICTED, Container, Containers
from e2e.store import Store

_CODE, _SOCKETS, _WORKSPACES = "/code", "/sockets", "/workspaces"
_RUNNER_FILE = f"{_CODE}/runner.pyz"
RUNNER_SOCKET = f"{_SOCKETS}/runner"
_POD_USER = ("--user", "65532:65532", "--group-add", str(POD_GROUP))


class SimulatedPod:
    """An agent on the worker image, and a runner on the base image, which only has a Python."""

    def __init__(self, image_containers: Containers, store: Store) -> None:
        self.uid = str(uuid.uuid4())
        self._containers = image_containers
        self._store = store
        self._code, self._sockets, self._workspaces = (image_containers.volume() for _ in range(3))
        options = (*RESTRICTED, *_POD_USER, *_mount(self._code, _CODE))
        pack = ("python3", "-m", "workron_runner.pack", _RUNNER_FILE)
        done = image_containers.run(*pack, options=options)
        assert done.returncode == 0, done.stderr

    def runner(self, *words: str) -> Container:
        """Start the runner."""
        options = (
            "--entrypoint", "python3", *_POD_USER, "--env", f"TMPDIR={_WORKSPACES}",
            *_mount(self._code, f"{_CODE}:ro"), *_mount(self._sockets, _SOCKETS),
            *_mount(self._workspaces, _WORKSPACES),
        )  # fmt: skip
        command = ("-IS", _RUNNER_FILE, "--socket", RUNNER_SOCKET, *words)
        return self._containers.start(*command, options=options, image=containers.base_image())

    def agent(self, *words: object) -> Container:
        """Start the agent."""
        values = (
            f"WORKRON_STORE={self._store.url_inside}", f"WORKRON_TOKEN={self._store.token}",
            f"WORKRON_POD_UID={self.uid}", f"WORKRON_RUNNER={RUNNER_SOCKET}",
        )  # fmt: skip
        settings = tuple(word for value in values for word in ("--env", value))
        options = (*_POD_USER, *settings, *_mount(self._sockets, _SOCKETS))
        command = ("worker", "--slots", 4, "--health", "127.0.0.1:8080", *words)
        return self._containers.start(*command, socket=self._store.socket, options=options)

    def remaining_files(self) -> list[str]:
        """List what commands and runners have left in the volume of the workspaces."""
        options = ("--user", "0", *_mount(self._workspaces, _WORKSPACES))
        done = self._containers.run("ls", "-A", _WORKSPACES, options=options)
        return done.stdout.split()


def _mount(volume: str, folder: str) -> tuple[str, str]:
    return "--volume", f"{volume}:{folder}"
