"""Containers of the worker image, as restricted as the Pod Security Standard `restricted` asks.

Every container, volume and image that a test makes has one label or tag, and is removed after it.
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
_DOCKERFILE = _ROOT / "Dockerfile"
_MODE = "WORKRON_E2E_IMAGE"
# No network: the store is reached by its socket, and health is asked from inside the container.
RESTRICTED = (
    "--read-only", "--tmpfs", "/tmp", "--cap-drop", "ALL", "--security-opt", "no-new-privileges",
    "--network", "none", "--memory", "512m", "--pids-limit", "200",
)  # fmt: skip
POD_GROUP = 2000
"""The group that the containers of a simulated pod share."""
_COUNT_ZOMBIES = """
import glob
stats = [open(one).read().rpartition(")")[2].split() for one in glob.glob("/proc/[0-9]*/stat")]
print(sum(one[0] == "Z" for one in stats))
"""
SOCKET_FOLDER = "/run/postgresql"
"""Where a container finds the socket of the store."""

Completed = subprocess.CompletedProcess[str]


def docker(*words: object, check: bool = True, stdin: str = "") -> Completed:
    """Run docker."""
    done = subprocess.run(
        ["docker", *map(str, words)], input=stdin, text=True, capture_output=True, check=False
    )
    if check and done.returncode != 0:
        raise AssertionError(f"docker {' '.join(map(str, words))}:\n{done.stdout}{done.stderr}")
    return done


def require_docker() -> None:
    """Fail where no docker daemon answers; skip instead if WORKRON_E2E_IMAGE=optional is set."""
    if shutil.which("docker") is None:
        problem = "docker is not on the PATH"
    elif (done := docker("version", check=False)).returncode != 0:
        problem = f"the docker daemon does not answer: {done.stderr.strip()}"
    else:
        return
    if os.environ.get(_MODE) == "optional":
        pytest.skip(problem)
    pytest.fail(f"{problem}; set {_MODE}=optional to leave the image tests out")


def base_image() -> str:
    """Return the image that the worker image is built on."""
    match = re.search(r"^ARG BASE=(\S+)$", _DOCKERFILE.read_text(), re.MULTILINE)
    assert match is not None
    return os.environ.get("BASE") or match[1]


def image_size(image: str) -> int:
    """Return the bytes of all layers of an image."""
    return int(docker("image", "inspect", "-f", "{{.Size}}", image).stdout)


def build_worker_image() -> Iterator[str]:
    """Build the worker image with `make image`, yield its name, and remove it."""
    name = f"workron-worker:e2e-{secrets.token_hex(4)}"
    # The build stage gets a name too: an unnamed stage could not be removed afterwards.
    stage = f"{name}-build"
    try:
        for image, options in ((stage, "ARGS=--target build-worker"), (name, "ARGS=")):
            subprocess.run(
                ["make", "--silent", "image", f"IMAGE={image}", options], cwd=_ROOT, check=True
            )
        yield name
    finally:
        docker("image", "rm", "--force", name, stage)


@contextlib.contextmanager
def image_from_dockerfile(dockerfile: str) -> Iterator[str]:
    """Build an image that copies no files, yield its name, and remove it."""
    name = f"workron-worker:e2e-{secrets.token_hex(4)}"
    docker("build", "--tag", name, "-", stdin=dockerfile)
    try:
        yield name
    finally:
        docker("image", "rm", "--force", name)


class Container:
    """One detached container and its log."""

    def __init__(self, identity: str) -> None:
        self.id = identity
        self._log = subprocess.Popen(
            ["docker", "logs", "--follow", identity],
            text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip

    def wait_for_event(self, event: str) -> dict[str, Any]:
        """Read the log up to this event, and return its fields."""
        assert self._log.stdout is not None
        lines: list[str] = []
        for line in self._log.stdout:
            lines.append(line)
            fields: dict[str, Any] = json.loads(line) if line.startswith("{") else {}
            if fields.get("event") == event:
                return fields
        raise AssertionError(f"the container ended without the event {event}\n{''.join(lines)}")

    def kill(self) -> None:
        """Kill it with SIGKILL."""
        docker("kill", self.id)

    def execute(self, *words: object) -> str:
        """Run another program in it, and return its output."""
        return docker("exec", self.id, *words).stdout

    def count_zombies(self) -> int:
        """Count its dead processes that no parent has waited for."""
        return int(self.execute("python3", "-c", _COUNT_ZOMBIES))

    def stop(self, seconds: int = 30) -> int:
        """Send SIGTERM, SIGKILL after this many seconds, and return the exit code."""
        docker("stop", "--time", seconds, self.id)
        return self.wait()

    def wait(self) -> int:
        """Wait for its end, and return the exit code."""
        return int(docker("wait", self.id).stdout)

    def close(self) -> None:
        """Remove it, whether it runs or not."""
        docker("rm", "--force", self.id, check=False)
        with self._log:
            self._log.kill()


class Containers:
    """Starts containers of one image, and removes them."""

    def __init__(self, image: str) -> None:
        self._image = image
        self._label = f"workron-e2e={secrets.token_hex(8)}"
        self._started: list[Container] = []
        self._volumes: list[str] = []

    def run(
        self, *words: object, options: tuple[object, ...] = RESTRICTED, image: str | None = None
    ) -> Completed:
        """Run a program in a new container to its end."""
        program, *arguments = words
        fixed = ("--rm", "--label", self._label, "--entrypoint", program)
        return docker("run", *fixed, *options, image or self._image, *arguments, check=False)

    def start(
        self,
        *words: object,
        socket: pathlib.Path | None = None,
        options: tuple[str, ...] = (),
        image: str | None = None,
    ) -> Container:
        """Start `workron` with these arguments, and with the socket of a store if one is given."""
        mount = ("--volume", f"{socket}:{SOCKET_FOLDER}/{socket.name}") if socket else ()
        fixed = ("--detach", "--label", self._label, *RESTRICTED, *mount, *options)
        done = docker("run", *fixed, image or self._image, *words)
        self._started.append(Container(done.stdout.strip()))
        return self._started[-1]

    def volume(self) -> str:
        """Make a volume that belongs to a group, like the volumes of a pod with an fsGroup."""
        name = docker("volume", "create", "--label", self._label).stdout.strip()
        self._volumes.append(name)
        chown = f"chgrp {POD_GROUP} /it && chmod 2770 /it"
        done = self.run("sh", "-c", chown, options=("--user", "0", "--volume", f"{name}:/it"))
        assert done.returncode == 0, done.stderr
        return name

    def close(self) -> None:
        """Remove the containers and volumes that were started here."""
        for one in self._started:
            one.close()
        if self._volumes:
            docker("volume", "rm", *self._volumes)

    def remaining(self) -> list[str]:
        """Return the ids of containers that still exist."""
        return docker("ps", "--all", "--quiet", "--filter", f"label={self._label}").stdout.split()
