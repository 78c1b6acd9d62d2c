"""The folder of each attempt, its environment, and the result file that the command writes.

All workspaces of one boot are in one folder, named after the boot and locked while its runner
lives, so that a later process can recognize and remove it (`boot_cleanup`). Most commands never
touch their folder, and creating and removing one costs as much as starting a command. Therefore a
workspace without inputs is reused for the next attempt of the same uid if its fingerprint shows
that nothing in it has changed. All others are removed by a thread (`FolderRemover`).
"""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import itertools
import os
import pathlib
import queue
import shutil
import stat
import tempfile
import threading
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from uuid import UUID

BOOT_VARIABLE: Final = "WORKRON_BOOT"
MAX_RESULT_BYTES: Final = 16 * 1024
_DEFAULT_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_NO_INPUTS: Final = "{}"
_MAX_PENDING_REMOVALS: Final = 10_000
"""With more folders waiting to be removed no attempt starts, so that the disk does not fill up."""


class WorkspaceError(Exception):
    """This machine cannot provide a workspace; the job is not at fault."""


class ResultFileError(Exception):
    """The result file is not acceptable."""


class FolderRemover:
    """A thread that removes folders in the order in which they are given."""

    def __init__(self) -> None:
        # Unbounded: the event loop must never wait for a disk.
        self._pending: queue.SimpleQueue[tuple[pathlib.Path, ...] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="folder-remover", daemon=True)
        self._thread.start()

    @property
    def is_overloaded(self) -> bool:
        """Whether too many folders wait to be removed."""
        return self._pending.qsize() > _MAX_PENDING_REMOVALS

    def remove(self, folder: pathlib.Path, *files: pathlib.Path) -> None:
        """Remove a folder and files that may not exist soon; the folder is renamed at once."""
        renamed = folder.with_name(f"{folder.name}.removed")
        with contextlib.suppress(OSError):
            folder.rename(renamed)
        self._pending.put((renamed, *files))

    def close(self) -> None:
        """Return when everything is removed."""
        self._pending.put(None)
        self._thread.join()

    def _run(self) -> None:
        while (paths := self._pending.get()) is not None:
            # A file that cannot be removed now is removed with the boot's folder. If this thread
            # died, every later attempt would be refused.
            with contextlib.suppress(Exception):
                _remove(*paths)


def remove_tree(path: pathlib.Path) -> None:
    """Remove a folder, even if a command has taken the permissions of folders in it away."""
    with contextlib.suppress(OSError):
        shutil.rmtree(path)
        return
    for directory, _, _ in os.walk(path):
        with contextlib.suppress(OSError):
            pathlib.Path(directory).chmod(0o700)
    shutil.rmtree(path, ignore_errors=True)


def _remove(folder: pathlib.Path, *files: pathlib.Path) -> None:
    for path in files:
        with contextlib.suppress(OSError):
            path.unlink()
    try:
        folder.rmdir()
    except OSError:
        remove_tree(folder)


@dataclass(frozen=True, slots=True)
class Workspace:
    """Where one attempt runs; inputs and result are outside its folder, which starts empty."""

    directory: pathlib.Path
    """Its working directory, HOME and TMPDIR."""
    inputs: pathlib.Path
    result: pathlib.Path
    fingerprint: tuple[object, ...] | None = None
    """Its state when it was created; None: it cannot be reused."""
    uid: int | None = None
    """Its owner; None: the runner's own uid."""


class Workspaces:
    """The workspaces of one boot."""

    def __init__(
        self, boot: UUID, *, has_uids: bool = False, inherits_environment: bool = False
    ) -> None:
        self._boot = boot
        self._inherited = dict(os.environ) if inherits_environment else {}
        self._root = boot_folder(boot)
        try:
            self._root.mkdir(mode=0o700)
            self._lock = lock_folder(self._root)
            if has_uids:
                # Other uids may pass through, but not list it.
                self._root.chmod(0o711)
                parents = self._root.parents
                if closed := [one for one in parents if not one.stat().st_mode & stat.S_IXOTH]:
                    self._root.rmdir()
                    raise WorkspaceError(
                        f"commands of other uids cannot pass through {closed[0]}: set TMPDIR"
                    )
        except OSError as error:
            raise WorkspaceError(f"cannot create {self._root}: {error.strerror}") from error
        self._numbers = itertools.count(1)
        self._remover = FolderRemover()
        self._reusable: defaultdict[int | None, list[Workspace]] = defaultdict(list)

    def acquire(self, inputs: str, uid: int | None = None) -> Workspace:
        """Return an empty workspace of that uid with these inputs; it never changes its owner."""
        if inputs == _NO_INPUTS and (reusable := self._reusable[uid]):
            return reusable.pop()
        return self._create(inputs, uid)

    def release(self, workspace: Workspace) -> None:
        """Keep an untouched workspace for another attempt; remove any other."""
        fingerprint = workspace.fingerprint
        if fingerprint is not None and fingerprint == _fingerprint(workspace):
            self._reusable[workspace.uid].append(workspace)
        elif workspace.uid is None:
            self._remover.remove(workspace.directory, workspace.inputs, workspace.result)
        else:
            self._remover.remove(workspace.directory.parent)

    def environment(self, own: Mapping[str, str], workspace: Workspace) -> dict[str, str]:
        """Return the whole environment of a command; `own` are the job's variables."""
        return {
            **self._inherited,
            "PATH": os.environ.get("PATH", _DEFAULT_PATH),
            "LANG": os.environ.get("LANG", "C.UTF-8"),
            "HOME": str(workspace.directory),
            "TMPDIR": str(workspace.directory),
            **own,
            "WORKRON_INPUTS": str(workspace.inputs),
            "WORKRON_RESULT": str(workspace.result),
            BOOT_VARIABLE: str(self._boot),
        }

    def close(self) -> None:
        """Remove everything."""
        self._remover.close()
        remove_tree(self._root)
        os.close(self._lock)

    def _create(self, inputs: str, uid: int | None) -> Workspace:
        if self._remover.is_overloaded:
            raise WorkspaceError(f"{self._root} fills up faster than folders can be removed")
        path = self._root / str(next(self._numbers))
        if uid is None:
            workspace = Workspace(
                path, path.with_suffix(".inputs.json"), path.with_suffix(".result.json")
            )
        else:
            # All in one folder of that uid: it may not write anywhere else in the boot's folder.
            workspace = Workspace(
                path / "home", path / "inputs.json", path / "result.json", uid=uid
            )
        try:
            if uid is not None:
                path.mkdir(mode=0o700)
            workspace.directory.mkdir()
            workspace.inputs.write_text(inputs, encoding="utf-8")
            if uid is not None:
                workspace.directory.chmod(0o700)
                # The outermost folder last: until then no other user can replace anything in it.
                for one in (workspace.inputs, workspace.directory, path):
                    os.chown(one, uid, uid, follow_symlinks=False)
        except OSError as error:
            raise WorkspaceError(
                f"cannot create a folder in {self._root}: {error.strerror}"
            ) from error
        if inputs != _NO_INPUTS:
            return workspace
        return dataclasses.replace(workspace, fingerprint=_fingerprint(workspace))


def boot_folder(boot: UUID) -> pathlib.Path:
    """Return the path of the folder that holds everything of a boot."""
    return pathlib.Path(tempfile.gettempdir()) / f"workron-{boot.hex}"


def lock_folder(folder: pathlib.Path) -> int:
    """Lock a folder while the returned descriptor is open; OSError: it is locked already."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def _fingerprint(workspace: Workspace) -> tuple[object, ...] | None:
    """Return what changes when a workspace is touched: a ctime cannot be set back.

    None if it cannot be read.
    """
    try:
        descriptor = os.open(workspace.inputs, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
        try:
            inputs = os.read(descriptor, len(_NO_INPUTS) + 1), _status(os.fstat(descriptor))
        finally:
            os.close(descriptor)
        folders = [_folder_fingerprint(workspace.directory)]
        if workspace.uid is not None:
            folders.append(_folder_fingerprint(workspace.directory.parent))
        return (*inputs, *folders, os.path.lexists(workspace.result))
    except OSError:
        return None


# Plain `os` calls, also above: pathlib takes twice the time, at the end of every attempt.
def _folder_fingerprint(folder: pathlib.Path) -> tuple[tuple[int, ...], frozenset[str]]:
    status = _status(os.stat(folder, follow_symlinks=False))  # noqa: PTH116
    # Two changes within one clock tick have the same ctime, so the names are compared too.
    return status, frozenset(os.listdir(folder))  # noqa: PTH208


def _status(one: os.stat_result) -> tuple[int, ...]:
    return (one.st_ino, one.st_mode, one.st_uid, one.st_gid, one.st_nlink, one.st_ctime_ns)


def read_result(path: pathlib.Path, owner: int | None = None) -> bytes:
    """Return the content of the result file, b"" if there is none.

    With an owner it has to be a file of that uid: a link may name one that its writer cannot read.
    """
    try:
        # Non-blocking and following no link: the command may have left a pipe, or a trap.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
    except FileNotFoundError:
        return b""
    except OSError as error:
        raise ResultFileError(f"the result cannot be read: {error.strerror}") from None
    try:
        file = os.fstat(descriptor)
        if not stat.S_ISREG(file.st_mode):
            raise ResultFileError("the result is not a regular file")
        if owner is not None and file.st_uid != owner:
            raise ResultFileError("the result is a file of another user")
        raw = os.read(descriptor, MAX_RESULT_BYTES + 1)
    finally:
        os.close(descriptor)
    if len(raw) > MAX_RESULT_BYTES:
        raise ResultFileError(f"the result is larger than {MAX_RESULT_BYTES} bytes")
    return raw
