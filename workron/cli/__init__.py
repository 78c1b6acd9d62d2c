"""The command line and the one place where the parts are put together, one module a command.

Belongs here: reading arguments and settings, opening a store, starting a loop, and showing what
happened: on a terminal, as plain lines, as JSON, and by the exit code.
Does not belong here: rules, SQL, and whatever a Python program would want without a terminal.
Called by: the `workron` program and `python -m workron`.
"""

__all__ = ["main"]


def main() -> None:
    """Run the program; Ctrl-C while it is still being loaded ends it as quietly as later."""
    try:
        from workron.cli import signals

        signals.handle_init_signals()
        from workron.cli import app

        app.main()
    except KeyboardInterrupt:
        # What shells expect of whoever was interrupted; `exit_codes` may not be loaded yet.
        raise SystemExit(130) from None
