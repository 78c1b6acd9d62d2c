"""The command line and the one place where the parts are put together, one module a command.

Belongs here: reading arguments and settings, opening a store, starting a loop, and showing what
happened: on a terminal, as plain lines, as JSON, and by the exit code.
Does not belong here: rules, SQL, and whatever a Python program would want without a terminal.
Called by: the `workron` program and `python -m workron`.
"""

from workron.cli.program import main

__all__ = ["main"]
