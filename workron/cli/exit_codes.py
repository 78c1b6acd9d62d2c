"""What the exit codes of all commands mean. Printed at the end of `workron --help`."""

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
    OK: "all went well",
    FAILED: "a job or the command failed",
    BAD_INPUT: "bad input or usage",
    NOT_FOUND: "no such job or workflow",
    STORE_TIMEOUT: "the store was away for too long",
    TIMED_OUT: "the time to wait was over",
    HUNG_UP: "ended by HUP",
    INTERRUPTED: "interrupted by Ctrl-C",
    TERMINATED: "ended by TERM",
}

HELP: Final = (
    "\nExit codes: " + ", ".join(f"{code} {words}" for code, words in MEANINGS.items()) + ".\n"
)
