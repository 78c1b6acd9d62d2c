"""Shells complete commands, options and values with the script that the program prints."""

import subprocess
import sys

import pytest

from tests.cli.conftest import Call

_BASH = """
workron() {{ "{python}" -m workron "$@"; }}
env() {{ shift 0; command env "$1" "$2" "$3" "{python}" -m workron; }}
source <(workron completion bash)
COMP_WORDS=({words} "") COMP_CWORD={at}
_workron_completion workron
printf '%s\\n' "${{COMPREPLY[@]}}"
"""


@pytest.mark.parametrize(
    ("words", "completed"),
    [("workron", "submit"), ("workron get", "NONE"), ("workron get -o", "json"),
     ("workron completion", "fish")],
)  # fmt: skip
def test_bash_completes_what_may_follow(words: str, completed: str) -> None:
    program = _BASH.format(python=sys.executable, words=words, at=len(words.split()))
    result = subprocess.run(
        ["/bin/bash", "--norc", "-c", program], capture_output=True, text=True, check=True
    )
    printed = result.stdout.split()
    assert (completed in printed) is (completed != "NONE"), result


def test_commands_are_completed_without_importing_them(
    call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("_WORKRON_COMPLETE", "complete_zsh")
    monkeypatch.setenv("_TYPER_COMPLETE_ARGS", "workron comp")
    result = call()
    assert '"completion":"Print a completion script for a shell."' in result.out


@pytest.mark.parametrize(
    ("shell", "line"),
    [("bash", "complete -o default"), ("zsh", "#compdef workron"), ("fish", "--command workron")],
)
def test_script_is_printed_for_each_shell(call: Call, shell: str, line: str) -> None:
    result = call("completion", shell)
    assert (result.code, line in result.out) == (0, True)


def test_shells_are_listed_when_the_shell_is_unknown(call: Call) -> None:
    result = call("completion", "tcsh")
    assert result.code == 2
    assert "'tcsh' is not one of: bash, zsh, fish" in result.err
