"""Advice on what to write instead of fields of other tools, and of values of a wrong type."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_NEAR: Final = 0.65
_CALLED: Final = "it is called {}"
_COMMAND: Final = (_CALLED.format("command"), "command")
_ATTEMPTS: Final = (
    "write maxAttempts, which counts the first attempt, too: 4 for 3 retries",
    "maxAttempts",
)
_WORKDIR: Final = (_CALLED.format("workdir"), "workdir")
_ENV: Final = ("write env: [{name: NAME, value: VALUE}]", "env")
_DEPENDS_ON: Final = ("write dependsOn: [{name: NAME}]", "dependsOn")
_TASKS: Final = (_CALLED.format("tasks"), "tasks")
_ITEMS: Final = ("write items: [a, b], an array with a job for each", "items")
_TIMEOUT: Final = ("write timeout: 90s", "timeout")
_ALLOW_FAILURE: Final = ("write allowFailure: true", "allowFailure")
_WHEN: Final = ("write it for an upstream: dependsOn: [{name: NAME, when: Failed}]", "dependsOn")
_POOL: Final = ("a command runs in its worker: set this for the WorkerPool", "pool")
_SCHEDULE: Final = ("a run starts once; call `workron submit` from cron", "command")

_OTHER_NAMES: Final[Mapping[str, tuple[str, str]]] = {
    **dict.fromkeys(("script", "run", "cmd", "exec", "entrypoint", "shellcommand"), _COMMAND),
    **dict.fromkeys(
        ("retries", "retry", "maxretries", "backofflimit", "attempts", "retrylimit"), _ATTEMPTS
    ),
    **dict.fromkeys(("cwd", "workingdir", "workingdirectory", "dir", "chdir"), _WORKDIR),
    **dict.fromkeys(("environment", "envs", "variables", "vars", "envfrom"), _ENV),
    **dict.fromkeys(
        ("needs", "depends", "dependencies", "deps", "requires", "after", "upstreams"), _DEPENDS_ON
    ),
    **dict.fromkeys(("steps", "jobs", "stages", "dag", "nodes"), _TASKS),
    **dict.fromkeys(("withitems", "foreach", "matrix", "loop", "each"), _ITEMS),
    **dict.fromkeys(("timeoutseconds", "timelimit", "activedeadlineseconds"), _TIMEOUT),
    **dict.fromkeys(("continueonerror", "ignoreerrors", "allowfailures"), _ALLOW_FAILURE),
    **dict.fromkeys(("when", "if", "condition"), _WHEN),
    **dict.fromkeys(("image", "container", "resources", "volumes", "nodeselector"), _POOL),
    **dict.fromkeys(("schedule", "cron"), _SCHEDULE),
    "args": ("write argv: [PROGRAM, ARGUMENT]", "argv"),
    "queue": (_CALLED.format("pool"), "pool"),
    "completions": (_CALLED.format("count"), "count"),
    "valuefrom": ("write fromEnv: NAME; a Secret belongs in env of a WorkerPool", "fromEnv"),
    "tasks": ("a Job has one command; write kind: Workflow for tasks", "argv"),
    "command": ("a Workflow has tasks; write kind: Job for one command", "tasks"),
    "argv": ("a Workflow has tasks; write kind: Job for one command", "tasks"),
}
"""Names without case, '_' and '-'; each with its advice, and a field that must be valid there."""

_EXAMPLES: Final = {
    "argv": "write argv: [PROGRAM, ARGUMENT], or a command line as command",
    "backoff": "write backoff: {initial: 5s}",
    "command": "write a list of arguments as argv",
    "dependsOn": "write dependsOn: [{name: NAME}]",
    "env": "write env: [{name: NAME, value: VALUE}]",
    "failOn": "write failOn: [64]",
    "items": "write items: [a, b]",
    "metadata": "write metadata: {name: NAME}",
    "retryOn": "write retryOn: [75]",
    "tasks": "write tasks: [{name: NAME, command: COMMAND}]",
}

_LISTS_OF_MAPPINGS: Final = frozenset({"dependsOn", "env", "tasks"})


def unknown_field(name: str, valid: Iterable[str]) -> str:
    """Return the message on an unknown field, with the name that was probably meant."""
    fields = {_plain(v): v for v in sorted(valid)}
    other = _OTHER_NAMES.get(_plain(name))
    near = difflib.get_close_matches(_plain(name), fields, n=1, cutoff=_NEAR)
    if other is not None and other[1] in fields.values():
        advice = other[0]
    elif near:
        advice = f"did you mean {fields[near[0]]}?"
    elif set(fields) >= {"name", "value", "fromenv"}:
        advice = f"write {{name: {name}, value: VALUE}}"
    else:
        advice = f"valid are {', '.join(fields.values())}"
    return f"there is no such field here; {advice}"


def near_word(word: object, valid: Iterable[str]) -> str:
    """Return a question for the word that was probably meant; empty if none is near."""
    words = {_plain(one): one for one in valid}
    near = difflib.get_close_matches(_plain(str(word)), words, n=1, cutoff=_NEAR)
    return f"; did you mean {words[near[0]]}?" if near else ""


def wrong_type(field: str, value: Any, *, is_entry: bool = False) -> str:
    """Return how to write a field whose value often has the wrong type; empty if unknown."""
    if is_entry and field not in _LISTS_OF_MAPPINGS:
        return ""
    if field == "command" and isinstance(value, dict):
        return "; quote a text that begins with {"
    if field == "spec" and isinstance(value, list):
        if any(isinstance(one, dict) and "name" in one for one in value):
            return "; the list belongs in spec.tasks of a Workflow"
        return "; write its fields without a '-' before them"
    if field == "spec" and isinstance(value, str):
        missing = ":" in value and ": " not in value
        return "; a space must follow each ':'" if missing else "; write spec: {command: COMMAND}"
    example = _EXAMPLES.get(field)
    return f"; {example}" if example else ""


def _plain(name: str) -> str:
    return name.replace("_", "").replace("-", "").casefold()
