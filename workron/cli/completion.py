"""`workron completion`: the script by which a shell completes commands and options.

The script calls `workron` with the words of the line in variables; `enable` prepares that call.
"""

from __future__ import annotations

import os
from enum import StrEnum
from typing import Annotated, Final

import typer

from workron.cli import options

_VARIABLE: Final = "_WORKRON_COMPLETE"
"""Set by the script when the shell asks for completions; typer answers."""


class Shell(StrEnum):
    """A shell with a script."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


def completion(
    shell: Annotated[
        Shell, typer.Argument(help="The shell: bash, zsh or fish.", **options.choice(Shell))
    ],
) -> None:
    """Print a script that makes a shell complete commands and options.

    bash: add `source <(workron completion bash)` to ~/.bashrc. zsh: the same with zsh in ~/.zshrc,
    after compinit. fish: `workron completion fish > ~/.config/fish/completions/workron.fish`.
    """
    from typer._completion_shared import get_completion_script

    typer.echo(
        get_completion_script(prog_name="workron", complete_var=_VARIABLE, shell=shell.value)
    )


def enable() -> None:
    """Prepare typer for a call by the script."""
    if _VARIABLE in os.environ:
        from typer._completion_classes import completion_init

        completion_init()
