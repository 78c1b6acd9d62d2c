"""Shuts a thread, and the command that it starts, off from what runs outside.

`enter` is handed on by `runner`, to be called on the thread that is about to start one command;
`__main__` and `workron.cli.apart` ask first whether it can be. In a domain of its own a
command can neither signal nor trace what it did not start, nor read its environment (unless it
holds CAP_PERFMON), nor reach its abstract sockets; files and the network are as they were. Nothing
lifts this again, and no program gets more rights than its caller from then on (as `sudo` would).
"""

from __future__ import annotations

import ctypes
import os
from typing import Final

_CREATE_RULESET: Final = 444
_RESTRICT_SELF: Final = 446
_ASK_VERSION: Final = 1
_VERSION_WITH_SCOPES: Final = 6
_SCOPE_ABSTRACT_SOCKETS_AND_SIGNALS: Final = 1 | 2
_PR_SET_NO_NEW_PRIVS: Final = 38


class _Ruleset(ctypes.Structure):
    _fields_ = (
        ("handled_access_fs", ctypes.c_uint64),
        ("handled_access_net", ctypes.c_uint64),
        ("scoped", ctypes.c_uint64),
    )


def is_there() -> bool:
    """Whether this kernel has domains with scopes: Linux 6.12 or newer, if it is switched on."""
    library = ctypes.CDLL(None, use_errno=True)
    version: int = library.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), _ASK_VERSION)
    return version >= _VERSION_WITH_SCOPES


def enter() -> None:
    """Put this thread into a new domain; OSError if that fails."""
    library = ctypes.CDLL(None, use_errno=True)
    rules = _Ruleset(scoped=_SCOPE_ABSTRACT_SOCKETS_AND_SIGNALS)
    size = ctypes.c_size_t(ctypes.sizeof(rules))
    _check(library.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
    ruleset = _check(library.syscall(_CREATE_RULESET, ctypes.byref(rules), size, 0))
    try:
        _check(library.syscall(_RESTRICT_SELF, ruleset, 0))
    finally:
        os.close(ruleset)


def _check(answer: int) -> int:
    if answer < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"no Landlock domain: {os.strerror(number)}")
    return answer
