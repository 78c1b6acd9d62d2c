"""The exit codes of all commands, printed at the end of `workron --help`.

An error of `workron.core.errors` has its code as `exit_code`.
"""

from __future__ import annotations

from typing import Final

OK: Final = 0
FAILED: Final = 1
BAD_INPUT: Final = 2
STORE: Final = 3
NOT_FOUND: Final = 4
TIMED_OUT: Final = 5
HUNG_UP: Final = 129
INTERRUPTED: Final = 130
CLOSED_OUTPUT: Final = 141
TERMINATED: Final = 143

MEANINGS: Final = {
    OK: "success",
    FAILED: "a job or workron itself failed",
    BAD_INPUT: "invalid input, or not allowed in the state of the job",
    STORE: "the store cannot be reached or refuses",
    NOT_FOUND: "no such job or workflow",
    TIMED_OUT: "--timeout expired",
    HUNG_UP: "terminated by SIGHUP",
    INTERRUPTED: "interrupted (Ctrl-C)",
    CLOSED_OUTPUT: "`workron run` was stopped because its output was closed",
    TERMINATED: "terminated by SIGTERM",
}

HELP: Final = (
    "\nExit codes: " + ", ".join(f"{code} {meaning}" for code, meaning in MEANINGS.items()) + ".\n"
)
