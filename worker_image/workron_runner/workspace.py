"""The places of attempts on disk, and the environment that points into them.

Called by `runner`, which takes a place for each attempt and gives it back. All of one boot stands
under one folder that carries the boot in its name, so that a later process can clear what a killed
one left (`process_reaper`, `workron_worker.identity`); it is locked for as long as its runner
lives.
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
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping
    from uuid import UUID


_MOST_WAITING: Final = 10_000
"""So many attempts may be ahead of their removal; then no other begins, lest the disk fill up."""


@dataclass(frozen=True, slots=True)
class Leftovers:
    """What one attempt left: its folder, and files that may never have been written."""

    folder: pathlib.Path
    files: tuple[pathlib.Path, ...]


class FolderRemover:
    """A thread that removes what it is given, in order."""

    def __init__(self) -> None:
        # Without a bound: who gives it something has deadlines to keep, and never waits for a disk.
        self._waiting: queue.SimpleQueue[Leftovers | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._sweep, name="broom", daemon=True)
        self._thread.start()

    @property
    def is_behind(self) -> bool:
        """Whether too much waits to be removed."""
        return self._waiting.qsize() > _MOST_WAITING

    def take(self, litter: Leftovers) -> None:
        """Remove it soon; under the folder's own name nothing is found from now on."""
        gone = litter.folder.with_name(f"{litter.folder.name}.gone")
        with contextlib.suppress(OSError):
            litter.folder.rename(gone)
        self._waiting.put(Leftovers(gone, litter.files))

    def close(self) -> None:
        """Return when all is removed."""
        self._waiting.put(None)
        self._thread.join()

    def _sweep(self) -> None:
        while (litter := self._waiting.get()) is not None:
            # What is left all the same goes with the folder around it; a thread that died would
            # have every later attempt wait for ever.
            with contextlib.suppress(Exception):
                _clear(litter)


def remove_folder(path: pathlib.Path) -> None:
    """Remove a tree, also where the command took the right to do so from its folders."""
    with contextlib.suppress(OSError):
        shutil.rmtree(path)
        return
    for directory, _, _ in os.walk(path):
        with contextlib.suppress(OSError):
            pathlib.Path(directory).chmod(0o700)
    shutil.rmtree(path, ignore_errors=True)


def _clear(litter: Leftovers) -> None:
    for path in litter.files:
        with contextlib.suppress(OSError):
            path.unlink()
    try:
        litter.folder.rmdir()
    except OSError:
        remove_folder(litter.folder)


BOOT_VARIABLE: Final = "WORKRON_BOOT"
_DEFAULT_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


_NO_INPUTS: Final = "{}"


class WorkspaceError(Exception):
    """This machine has no room for an attempt; no fault of the job."""


@dataclass(frozen=True, slots=True)
class Workspace:
    """Where one attempt runs; its files lie beside its folder, so that this is empty at first."""

    directory: pathlib.Path
    """Its cwd, HOME and TMPDIR."""
    inputs: pathlib.Path
    result: pathlib.Path
    seal: tuple[object, ...] | None = None
    """How it was when it was made; None: it has inputs of its own, or nobody could look into it,
    and so it is for nobody else."""
    uid: int | None = None
    """Whose it is; None: the runner's own."""

    @property
    def litter(self) -> Leftovers:
        """All that there is of it."""
        if self.uid is None:
            return Leftovers(self.directory, (self.inputs, self.result))
        return Leftovers(self.directory.parent, ())

    def within(self, workdir: str | None) -> str:
        """Resolve a job's `workdir`; a relative one lies in the attempt's own folder."""
        return str(self.directory / workdir) if workdir else str(self.directory)


class Workspaces:
    """The folder of one boot, with a fresh folder in it for each attempt."""

    def __init__(
        self, boot: UUID, *, has_uids: bool = False, is_handing_down: bool = False
    ) -> None:
        self._boot = boot
        self._handed_down = dict(os.environ) if is_handing_down else {}
        self._root = workspace_folder(boot)
        try:
            self._root.mkdir(mode=0o700)
            self._lock = locked_folders(self._root)
            if has_uids:
                _open_way(self._root)
        except OSError as error:
            raise WorkspaceError(f"{self._root} cannot be made: {error.strerror}") from error
        self._numbers = itertools.count(1)
        self._broom = FolderRemover()
        self._spares: defaultdict[int | None, list[Workspace]] = defaultdict(list)

    def place(self, inputs: str, uid: int | None = None) -> Workspace:
        """Give an attempt a folder as new, with the text of its inputs beside it.

        Most commands never touch theirs, and to make one and remove it costs as much as to start a
        command: so a folder without inputs that is as it was made is given to another, of the same
        uid: it never changes its owner.
        """
        if inputs == _NO_INPUTS and (spares := self._spares[uid]):
            return spares.pop()
        return self._make(inputs, uid)

    def leave(self, place: Workspace) -> None:
        """Keep the folder of an attempt for another, or have it removed with all that is in it."""
        if place.seal is not None and place.seal == _seal(place):
            self._spares[place.uid].append(place)
        else:
            self._broom.take(place.litter)

    def _make(self, inputs: str, uid: int | None) -> Workspace:
        if self._broom.is_behind:
            raise WorkspaceError(f"{self._root} cannot be cleared as fast as it is filled")
        number = next(self._numbers)
        place = self._shared_place(number) if uid is None else self._own_place(number, uid)
        try:
            if uid is not None:
                place.directory.parent.mkdir(mode=0o700)
            place.directory.mkdir()
            place.inputs.write_text(inputs, encoding="utf-8")
            if uid is not None:
                _hand_over(place, uid)
        except OSError as error:
            raise WorkspaceError(
                f"no folder can be made in {self._root}: {error.strerror}"
            ) from error
        if inputs != _NO_INPUTS:
            return place
        return dataclasses.replace(place, seal=_seal(place))

    def _shared_place(self, number: int) -> Workspace:
        return Workspace(
            self._root / str(number),
            self._root / f"{number}.inputs.json",
            self._root / f"{number}.result.json",
        )

    def _own_place(self, number: int, uid: int) -> Workspace:
        """Name a place whose files lie in a folder of its own: its uid cannot write beside it."""
        room = self._root / str(number)
        return Workspace(room / "home", room / "inputs.json", room / "result.json", uid=uid)

    def environment(self, own: Mapping[str, str], place: Workspace) -> dict[str, str]:
        """Compose what the command sees: of this process only its PATH and language, or all."""
        return {
            **self._handed_down,
            "PATH": os.environ.get("PATH", _DEFAULT_PATH),
            "LANG": os.environ.get("LANG", "C.UTF-8"),
            "HOME": str(place.directory),
            "TMPDIR": str(place.directory),
            **own,
            "WORKRON_INPUTS": str(place.inputs),
            "WORKRON_RESULT": str(place.result),
            BOOT_VARIABLE: str(self._boot),
        }

    def close(self) -> None:
        """Remove the folder."""
        self._broom.close()
        remove_folder(self._root)
        os.close(self._lock)


def workspace_folder(boot: UUID) -> pathlib.Path:
    """Name the folder under which everything of a boot stands."""
    return pathlib.Path(tempfile.gettempdir()) / f"workron-{boot.hex}"


def locked_folders(root: pathlib.Path) -> int:
    """Lock the folder of a boot for as long as the descriptor is open; OSError: another has it."""
    descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def _open_way(root: pathlib.Path) -> None:
    """Let other uids pass through, and list nothing."""
    root.chmod(0o711)
    if closed := [one for one in root.parents if not one.stat().st_mode & stat.S_IXOTH]:
        root.rmdir()
        raise WorkspaceError(f"commands of other uids cannot pass through {closed[0]}: set TMPDIR")


def _hand_over(place: Workspace, uid: int) -> None:
    room = place.directory.parent
    place.directory.chmod(0o700)
    # The outermost last: until then nobody else can put anything in its way.
    for path in (place.inputs, place.directory, room):
        os.chown(path, uid, uid, follow_symlinks=False)


def _seal(place: Workspace) -> tuple[object, ...] | None:
    """Take down what tells whether a place was touched: nobody can set a time of change back.

    None if it cannot be told.
    """
    try:
        folders = [_look_into(place.directory)]
        if place.uid is not None:
            folders.append(_look_into(place.directory.parent))
        return (*_read(place.inputs), *folders, os.path.lexists(place.result))
    except OSError:
        return None


# The calls of `os`, here and below, take half the time of those that hide them, at every end.
def _read(inputs: pathlib.Path) -> tuple[bytes, tuple[int, ...]]:
    descriptor = os.open(inputs, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
    try:
        return os.read(descriptor, len(_NO_INPUTS) + 1), _mark(os.fstat(descriptor))
    finally:
        os.close(descriptor)


def _look_into(folder: pathlib.Path) -> tuple[tuple[int, ...], frozenset[str]]:
    mark = _mark(os.stat(folder, follow_symlinks=False))  # noqa: PTH116
    # Within one tick of the clock that time stands still, so the contents are looked at too.
    return mark, frozenset(os.listdir(folder))  # noqa: PTH208


def _mark(one: os.stat_result) -> tuple[int, ...]:
    return (one.st_ino, one.st_mode, one.st_uid, one.st_gid, one.st_nlink, one.st_ctime_ns)


MAX_RESULT_BYTES: Final = 16 * 1024


class ResultFileError(Exception):
    """What stands where the result should be cannot be taken."""


def read_result(path: pathlib.Path, owner: int | None = None) -> bytes:
    """Give the bytes of the result, none if there is none; LeavingsError says what is wrong.

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
            raise ResultFileError("the result is somebody else's file")
        raw = os.read(descriptor, MAX_RESULT_BYTES + 1)
    finally:
        os.close(descriptor)
    if len(raw) > MAX_RESULT_BYTES:
        raise ResultFileError(f"the result is larger than {MAX_RESULT_BYTES} bytes")
    return raw
