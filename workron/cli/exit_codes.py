"""What the exit codes of all commands mean. Printed at the end of `workron --help`."""

from __future__ import annotations

from typing import Final

OK: Final = 0
FAILED: Final = 1
BAD_INPUT: Final = 2
NOT_FOUND: Final = 4
TIMED_OUT: Final = 124
INTERRUPTED: Final = 130

HELP: Final = """
Exit codes: 0 all went well, 1 a job or the command failed, 2 bad input or usage, 4 no such job or
workflow, 124 the time to wait was over, 130 interrupted.
"""
