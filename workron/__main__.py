"""Runs `python -m workron`, which is the same as the `workron` program."""

from workron import cli

if __name__ == "__main__":
    cli.main()
