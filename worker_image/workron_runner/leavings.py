"""Reads what a command left as its result: bytes, bounded, and trusted in nothing.

Called by `runner`; what the bytes say is judged by `workron_worker.result`.
"""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import pathlib

LIMIT_BYTES: Final = 16 * 1024


class LeavingsError(Exception):
    """What stands where the result should be cannot be taken."""


def read(path: pathlib.Path, owner: int | None = None) -> bytes:
    """Give the bytes of the result, none if there is none; LeavingsError says what is wrong.

    With an owner it has to be a file of that uid: a link may name one that its writer cannot read.
    """
    try:
        # Non-blocking and following no link: the command may have left a pipe, or a trap.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
    except FileNotFoundError:
        return b""
    except OSError as error:
        raise LeavingsError(f"the result cannot be read: {error.strerror}") from None
    try:
        file = os.fstat(descriptor)
        if not stat.S_ISREG(file.st_mode):
            raise LeavingsError("the result is not a regular file")
        if owner is not None and file.st_uid != owner:
            raise LeavingsError("the result is somebody else's file")
        raw = os.read(descriptor, LIMIT_BYTES + 1)
    finally:
        os.close(descriptor)
    if len(raw) > LIMIT_BYTES:
        raise LeavingsError(f"the result is larger than {LIMIT_BYTES} bytes")
    return raw
