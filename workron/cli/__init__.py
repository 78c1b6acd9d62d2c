"""The `workron` command line, and the place where stores, workers and loops are put together.

`app` has the commands, one module for each group of them. The rest reads options, opens stores and
prints results: on a terminal, as plain lines, as JSON, and as an exit code.
"""

__all__ = ["main"]


def main() -> None:
    """Run the program; Ctrl-C ends it quietly, also while modules are being imported."""
    try:
        from workron.cli import init_process

        init_process.handle_signals()
        from workron.cli import app

        app.main()
    except KeyboardInterrupt:
        # The code that shells expect after Ctrl-C; `exit_codes` may not be imported yet.
        raise SystemExit(130) from None
