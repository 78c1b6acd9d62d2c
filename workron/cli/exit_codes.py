"""The exit codes of all commands, printed at the end of `workron --help`."""

from __future__ import annotations

from typing import Final

OK: Final = 0
FAILED: Final = 1
BAD_INPUT: Final = 2
NOT_FOUND: Final = 4
STORE_TIMEOUT: Final = 5
TIMED_OUT: Final = 124
HUNG_UP: Final = 129
INTERRUPTED: Final = 130
TERMINATED: Final = 143

MEANINGS: Final = {
    OK: "success",
    FAILED: "a job or the command failed",
    BAD_INPUT: "invalid input or usage",
    NOT_FOUND: "no such job or workflow",
    STORE_TIMEOUT: "the store did not answer in time",
    TIMED_OUT: "--timeout expired",
    HUNG_UP: "terminated by SIGHUP",
    INTERRUPTED: "interrupted (Ctrl-C)",
    TERMINATED: "terminated by SIGTERM",
}

HELP: Final = (
    "\nExit codes: " + ", ".join(f"{code} {meaning}" for code, meaning in MEANINGS.items()) + ".\n"
)
