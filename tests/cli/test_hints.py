"""Hints on failures are printed for a recognized cause only, and name no value of the caller."""

from typing import Any

import pytest

from tests.cli import rows
from workron.cli import hints
from workron.core.states import State

_ENVIRON = {"TOKEN": "s3cr3t", "PATH": "/bin", "PWD": "/home/me", "HOME": "/home/me"}


def _hint(spec: dict[str, Any], output: str = "", message: str | None = None) -> str | None:
    row = rows.row("a", State.FAILED, message=message)
    return hints.hint(spec, row, output.encode(), _ENVIRON)


@pytest.mark.parametrize(
    ("spec", "output"),
    [
        ({"command": "false"}, ""),
        ({"command": "make"}, "make: *** [all] Error 1"),
        ({"command": "cat a", "workdir": "/data"}, "cat: a: No such file or directory"),
        ({"command": "cat /etc/a"}, "cat: /etc/a: No such file or directory"),
        ({"command": "echo $PWD $HOME $WORKRON_ITEM; false"}, ""),
        ({"command": "echo $TOKEN; false", "env": [{"name": "TOKEN", "fromEnv": "TOKEN"}]}, ""),
        ({"command": "TOKEN=x; echo $TOKEN; false"}, ""),
        ({"command": "for TOKEN in a b; do echo $TOKEN; false; done"}, ""),
        ({"command": "set -e\nls /a\nfalse"}, "ls: cannot access '/a': No such file or directory"),
        ({"command": "ls /a\nfalse", "shell": ["bash", "-euo", "pipefail", "-c"]}, "not found"),
        ({"command": "[[ a ]]", "shell": "bash"}, "[[: not found"),
        ({"command": "python3 a.py", "workdir": "/x"}, "KeyError: 'name'"),
    ],
)
def test_no_hint_is_given_when_no_cause_is_recognized(spec: dict[str, Any], output: str) -> None:
    assert _hint(spec, output) is None


@pytest.mark.parametrize(
    ("spec", "output", "part"),
    [
        ({"command": "x\nfalse", "shell": "bash"}, "bash: line 1: x: command not found", "line 1"),
        ({"command": "x", "shell": "bash"}, "bash: line 1: x: command not found", "x is in no"),
        ({"command": "x"}, "bash: line 1: TOKEN: unbound variable", "TOKEN is set in your shell"),
        ({"command": "set -o pipefail"}, "sh: 1: set: Illegal option -o pipefail", "shell: bash"),
        ({"command": "source a"}, "sh: 1: source: not found", "shell: bash"),
        ({"command": "node a.js"}, "Error: No such file or directory: 'a.js'", "workdir: ."),
        ({"argv": ["cat", "$TOKEN"]}, "cat: '$TOKEN': No such file or directory", "argv runs"),
        ({"argv": ["ls", "|", "wc"]}, "", "argv runs"),
        ({"command": "docker run -it a"}, "the input device is not a TTY", "standard input"),
    ],
)
def test_hint_is_given_for_the_words_of_each_shell(
    spec: dict[str, Any], output: str, part: str
) -> None:
    text = _hint(spec, output)
    assert text is not None
    assert part in text


def test_message_is_searched_when_a_command_has_not_started() -> None:
    message = "the command could not be started: './a': Exec format error"
    assert "#!/bin/sh" in (_hint({"argv": ["/a"]}, message=message) or "")


def test_only_the_end_of_a_long_output_is_searched() -> None:
    lost = "sh: 1: source: not found\n"
    assert _hint({"command": "source a"}, lost + "x\n" * 1000) is None
    assert _hint({"command": "source a"}, "x" * 100_000 + "\n" + lost) is not None


def test_value_of_a_variable_is_not_in_the_hint() -> None:
    assert _hint({"command": "test $TOKEN = x"}) == (
        "TOKEN is set in your shell, but not passed to commands;"
        " add env: [{name: TOKEN, fromEnv: TOKEN}]"
    )
