"""Containers of the worker's image, as hard as Kubernetes' restricted standard makes them.

Everything that is made here is known by one label or tag, and is gone after the tests.
"""

import contextlib
import json
import os
import pathlib
import re
import secrets
import shutil
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

_ROOT = pathlib.Path(__file__).parents[1]
_DOCKERFILE = _ROOT / "worker_image" / "Dockerfile"
_REQUIRED = "WORKRON_E2E_IMAGE"
# No network: the store is reached by its socket, whoever looks at a worker's health is inside.
HARD = (
    "--read-only", "--tmpfs", "/tmp", "--cap-drop", "ALL", "--security-opt", "no-new-privileges",
    "--network", "none", "--memory", "512m", "--pids-limit", "200",
)  # fmt: skip
GROUP = 2000
"""What the containers of a pod have in common."""
_ZOMBIES = """
import glob
stats = [open(one).read().rpartition(")")[2].split() for one in glob.glob("/proc/[0-9]*/stat")]
print(sum(one[0] == "Z" for one in stats))
"""
SOCKETS = "/run/postgresql"
"""Where a container finds the store."""

Said = subprocess.CompletedProcess[str]


def docker(*words: object, is_checked: bool = True, stdin: str = "") -> Said:
    """Call docker; what it prints is in the answer."""
    said = subprocess.run(
        ["docker", *map(str, words)], input=stdin, text=True, capture_output=True, check=False
    )
    if is_checked and said.returncode != 0:
        raise AssertionError(f"docker {' '.join(map(str, words))}:\n{said.stdout}{said.stderr}")
    return said


def need_docker() -> None:
    """Skip where no daemon answers, or fail if one was promised."""
    if shutil.which("docker") is None:
        why = "there is no docker on the PATH"
    elif (said := docker("version", is_checked=False)).returncode != 0:
        why = f"no docker daemon answers: {said.stderr.strip()}"
    else:
        return
    if os.environ.get(_REQUIRED) == "required":
        pytest.fail(f"{why}, and {_REQUIRED} says that there has to be one")
    pytest.skip(why)


def base() -> str:
    """The image that the worker's is made from."""
    named = re.search(r"^ARG BASE=(\S+)$", _DOCKERFILE.read_text(), re.MULTILINE)
    assert named is not None
    return os.environ.get("BASE") or named[1]


def size(image: str) -> int:
    """The bytes of all layers of an image."""
    return int(docker("image", "inspect", "-f", "{{.Size}}", image).stdout)


def built() -> Iterator[str]:
    """Build the image by the door that everybody uses; its name, for as long as it is there."""
    name = f"workron-worker:e2e-{secrets.token_hex(4)}"
    # The stage before the last has a name too: without one, nothing would tell it from others.
    stage = f"{name}-build"
    try:
        for image, options in ((stage, "ARGS=--target build"), (name, "ARGS=")):
            subprocess.run(
                ["make", "--silent", "image", f"IMAGE={image}", options], cwd=_ROOT, check=True
            )
        yield name
    finally:
        docker("image", "rm", "--force", name, stage)


@contextlib.contextmanager
def made_of(dockerfile: str) -> Iterator[str]:
    """Build an image that needs no files; its name, for as long as it is there."""
    name = f"workron-worker:e2e-{secrets.token_hex(4)}"
    docker("build", "--tag", name, "-", stdin=dockerfile)
    try:
        yield name
    finally:
        docker("image", "rm", "--force", name)


class Container:
    """One that was started and left to itself."""

    def __init__(self, identity: str) -> None:
        self.id = identity
        self._log = subprocess.Popen(
            ["docker", "logs", "--follow", identity],
            text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip

    def hear(self, event: str) -> dict[str, Any]:
        """Read its log up to this event."""
        assert self._log.stdout is not None
        lines: list[str] = []
        for line in self._log.stdout:
            lines.append(line)
            said: dict[str, Any] = json.loads(line) if line.startswith("{") else {}
            if said.get("event") == event:
                return said
        raise AssertionError(f"the container ended without saying: {event}\n{''.join(lines)}")

    def kill(self) -> None:
        """End it as no program can prevent."""
        docker("kill", self.id)

    def execute(self, *words: object) -> str:
        """Run one more program in it."""
        return docker("exec", self.id, *words).stdout

    def zombies(self) -> int:
        """Count the dead in it that nobody has buried."""
        return int(self.execute("python3", "-c", _ZOMBIES))

    def stop(self, seconds: int = 30) -> int:
        """Send TERM, KILL after so many seconds, and tell how it ended."""
        docker("stop", "--time", seconds, self.id)
        return self.ended()

    def ended(self) -> int:
        """Wait for its end."""
        return int(docker("wait", self.id).stdout)

    def close(self) -> None:
        """Remove it, whatever it does."""
        docker("rm", "--force", self.id, is_checked=False)
        with self._log:
            self._log.kill()


class Containers:
    """Starts containers of one image."""

    def __init__(self, image: str) -> None:
        self._image = image
        self._label = f"workron-e2e={secrets.token_hex(8)}"
        self._started: list[Container] = []
        self._volumes: list[str] = []

    def run(
        self, *words: object, options: tuple[object, ...] = HARD, image: str | None = None
    ) -> Said:
        """Run the first word in a container, with the others, to its end."""
        program, *rest = words
        mine = ("--rm", "--label", self._label, "--entrypoint", program)
        return docker("run", *mine, *options, image or self._image, *rest, is_checked=False)

    def start(
        self,
        *words: object,
        socket: pathlib.Path | None = None,
        options: tuple[str, ...] = (),
        image: str | None = None,
    ) -> Container:
        """Start `workron` with these words, and with the socket of a store, if there is one."""
        place = ("--volume", f"{socket}:{SOCKETS}/{socket.name}") if socket else ()
        mine = ("--detach", "--label", self._label, *HARD, *place, *options)
        said = docker("run", *mine, image or self._image, *words)
        self._started.append(Container(said.stdout.strip()))
        return self._started[-1]

    def volume(self) -> str:
        """Make a volume that belongs to a group, as one of a pod does."""
        name = docker("volume", "create", "--label", self._label).stdout.strip()
        self._volumes.append(name)
        own = f"chgrp {GROUP} /it && chmod 2770 /it"
        said = self.run("sh", "-c", own, options=("--user", "0", "--volume", f"{name}:/it"))
        assert said.returncode == 0, said.stderr
        return name

    def close(self) -> None:
        """Remove what was started; that nothing else is left is for the caller to see."""
        for one in self._started:
            one.close()
        if self._volumes:
            docker("volume", "rm", *self._volumes)

    def left(self) -> list[str]:
        """Name the containers that are still there."""
        found = docker("ps", "--all", "--quiet", "--filter", f"label={self._label}")
        return found.stdout.split()
