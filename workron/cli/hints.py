"""Hints on failed commands, where a habit of another tool or shell may be the cause.

A command of Workron runs in a new, empty folder, with few variables, with an empty standard input
and in `sh`. A hint says which of these may explain a failure, and what to write in the manifest.
`hint` reads the end of the output; it does no I/O, and is called for failures that are printed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from workron.core import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from workron.store.types import JobRow


_TAIL_BYTES: Final = 16 * 1024
_LINES: Final = 50
_LINE: Final = 400
"""Lines, and characters of each, that are searched: patterns take quadratic time."""


@dataclass(frozen=True, slots=True)
class _Failure:
    """A failed command, and the environment of its caller."""

    command: str
    """The command line; of argv nothing."""
    argv: Sequence[str]
    shell: Sequence[str]
    variables: frozenset[str]
    """Names that the spec sets."""
    has_workdir: bool
    message: str
    output: str
    environ: Mapping[str, str]

    @property
    def lines(self) -> Sequence[str]:
        """The lines of the command."""
        return self.command.strip().splitlines()

    def find(self, pattern: str) -> re.Match[str] | None:
        """Search in the output, then in the message of the job."""
        return re.search(pattern, self.output, re.MULTILINE) or re.search(pattern, self.message)


def hint(
    spec: Mapping[str, Any], row: JobRow, output: bytes, environ: Mapping[str, str]
) -> str | None:
    """Return what may explain a failure, and what to change; None if nothing is recognized.

    Of `environ`, the environment of the caller, only names are used.
    """
    shell = spec.get("shell") or "sh"
    lines = printable.tail(output, _TAIL_BYTES).splitlines()
    failure = _Failure(
        command=str(spec.get("command") or ""),
        argv=[str(one) for one in spec.get("argv") or ()],
        shell=[shell] if isinstance(shell, str) else [str(one) for one in shell],
        variables=frozenset(str(one.get("name")) for one in spec.get("env") or ()),
        has_workdir=bool(spec.get("workdir")),
        message=row.message or "",
        output="\n".join(line[:_LINE] for line in lines[-_LINES:]),
        environ=environ,
    )
    return next((text for rule in _RULES if (text := rule(failure))), None)


_BASH: Final = (
    r"(?:^|[\s:])(\[\[|source|shopt|declare|typeset|mapfile|pushd|popd|function): not found"
    r"|Bad substitution|Syntax error: (\"\(\"|redirection) unexpected|Illegal option -o pipefail"
)


def _needs_bash(failure: _Failure) -> str | None:
    if failure.shell[0].rpartition("/")[2] != "sh" or not failure.find(_BASH):
        return None
    return "the command runs in sh, and this is a feature of bash; add `shell: bash`"


_UNSET: Final = r"\b([A-Za-z_]\w*): (?:parameter not set|unbound variable)|KeyError: '(\w+)'"
_REFERENCE: Final = re.compile(r"\$\{?([A-Za-z_]\w*)")
_ALWAYS_SET: Final = frozenset(
    {"PATH", "LANG", "HOME", "TMPDIR", "TRACEPARENT"}
    | {"PWD", "OLDPWD", "SHLVL", "IFS", "PPID", "OPTIND", "OPTARG"}
    | {"UID", "EUID", "RANDOM", "HOSTNAME", "SHELL", "SECONDS", "BASH"}
)
"""Variables that Workron or the shell sets."""


def _needs_variable(failure: _Failure) -> str | None:
    if found := failure.find(_UNSET):
        name = found[1] or found[2]
        if not _is_passed(failure, name) and name in failure.environ:
            return _variable_advice(name)
        if found[1] and not _is_passed(failure, name):
            return f"nothing sets {name}: add it to env: [{{name: {name}, value: …}}]"
    for name in _REFERENCE.findall(failure.command):
        if not _is_passed(failure, name) and name in failure.environ:
            return _variable_advice(name)
    return None


def _is_passed(failure: _Failure, name: str) -> bool:
    is_assigned = re.search(rf"\b{name}=|\b(for|read)\s+{name}\b", failure.command)
    is_known = name in failure.variables | _ALWAYS_SET or name.startswith("WORKRON_")
    return is_known or is_assigned is not None


def _variable_advice(name: str) -> str:
    return (
        f"{name} is set in your shell, but not passed to commands;"
        f" add env: [{{name: {name}, fromEnv: {name}}}]"
    )


_SHELL_ERROR: Final = re.compile(r"^\S*sh: (?:line )?(\d+): ", re.MULTILINE)
_STOPS: Final = re.compile(r"^\s*set\s+-\w*e|&&\s*\\?$", re.MULTILINE)
_ERROR: Final = r"No such file|not found|[Pp]ermission denied|[Cc]annot |[Ee]rror"


def _went_on(failure: _Failure) -> str | None:
    """Hint at a line that failed before the last one: the shell goes on."""
    numbers = [int(number) for number in _SHELL_ERROR.findall(failure.output)]
    if not _goes_on(failure) or not numbers or min(numbers) >= len(failure.lines):
        return None
    return (
        f"line {min(numbers)} of the command failed, and the shell went on with the next one;"
        " begin the command with `set -e`"
    )


def _may_have_gone_on(failure: _Failure) -> str | None:
    if not _goes_on(failure) or not failure.find(_ERROR):
        return None
    return (
        f"the exit code is that of the last of {len(failure.lines)} lines; to stop at the first"
        " that fails, begin the command with `set -e`"
    )


def _goes_on(failure: _Failure) -> bool:
    options = [word for word in failure.shell[1:] if re.fullmatch(r"-\w*e\w*", word)]
    is_shell = failure.shell[0].endswith("sh")
    return (
        is_shell and len(failure.lines) > 1 and not options and not _STOPS.search(failure.command)
    )


_OWN_FOLDER: Final = r"\S*/workron-[0-9a-f]{32}/\d+/"
_RELATIVE: Final = r"(?![/'\"])[^\s:'\"]+"
_MISSING_FILE: Final = (
    rf"can't open file '{_OWN_FOLDER}"
    rf"|: (?:cannot open |cannot access )?['\"]?(?:{_OWN_FOLDER}[^\s:]*|{_RELATIVE})['\"]?"
    r": No such file or directory"
    rf"|: cannot open {_RELATIVE}: No such file"
    rf"|No such file or directory: '(?:{_OWN_FOLDER}|{_RELATIVE}')"
    rf"|: (?:\d+: )?{_RELATIVE}/{_RELATIVE}: not found"
    rf"|could not be started: '(?!/)[^']*/[^']*': No such file"
)


def _needs_folder(failure: _Failure) -> str | None:
    if failure.has_workdir or not failure.find(_MISSING_FILE):
        return None
    if re.search(r"~/|\$\{?HOME\b", failure.command):
        return (
            "HOME of a command is its new, empty folder; for yours, add"
            " env: [{name: HOME, fromEnv: HOME}]"
        )
    return (
        "a command runs in a new, empty folder; to run it in the folder of the manifest,"
        " add `workdir: .`"
    )


def _argv_is_no_shell(failure: _Failure) -> str | None:
    operators = {"|", "||", "&&", ";", ">", ">>", "<", "&"}
    has_blank = len(failure.argv) == 1 and len(failure.argv[0].split()) > 1
    if has_blank or any(one in operators or _REFERENCE.match(one) for one in failure.argv):
        return "argv runs without a shell; write a command line as `command: …`"
    return None


def _not_executable(failure: _Failure) -> str | None:
    if failure.find(r"Exec format error"):
        return "the file needs a first line that names its program, such as #!/bin/sh"
    if found := failure.find(r"^\S*sh: (?:line )?\d+: (\S+): Permission denied"):
        return f"the file is not executable: run `chmod +x {found[1]}`, or write `sh {found[1]}`"
    return None


def _program_is_missing(failure: _Failure) -> str | None:
    found = failure.find(r"sh: (?:line )?\d+: ([\w.+-]+): (?:command )?not found")
    if found is None:
        return None
    return (
        f"{found[1]} is in no folder of PATH: install it, or write its full path; aliases and"
        " functions of your shell are not known"
    )


def _needs_input(failure: _Failure) -> str | None:
    if not failure.find(r"EOFError|EOF when reading|not a (?:tty|TTY)|Inappropriate ioctl"):
        return None
    return "the standard input of a command is empty; pass values by env, items or a file"


def _module_is_missing(failure: _Failure) -> str | None:
    found = failure.find(r"No module named '?([\w.]+)")
    if found is None:
        return None
    own = "" if failure.has_workdir else ", or add `workdir: .` if it is beside the manifest"
    return (
        f"the first python on PATH has no {found[1]}: activate its environment before"
        f" `workron run`, write the path of its python{own}"
    )


_RULES: Final[Sequence[Callable[[_Failure], str | None]]] = (
    _needs_bash,
    _argv_is_no_shell,
    _needs_variable,
    _went_on,
    _needs_folder,
    _not_executable,
    _program_is_missing,
    _module_is_missing,
    _needs_input,
    _may_have_gone_on,
)
"""The first that applies counts: more certain ones come first."""
