"""Mistakes that people make when they use Workron for the first time, each with its message.

An entry has what a person wrote, the text that must be in the output, and the exit code. Read a
message as a stranger would: it says what is wrong, where, and what to do.
"""

import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

_HEAD: Final = "apiVersion: workron.dev/v1alpha1\nkind: {}\nmetadata: {{name: {}}}\nspec:{}\n"


@dataclass(frozen=True)
class Mistake:
    """What a person did; the file is `m.yaml` in the current folder."""

    name: str
    message: str
    file: str | bytes = ""
    arguments: tuple[str, ...] = ("run", "m.yaml")
    code: int = 2
    stdin: str = ""
    environ: Mapping[str, str] = field(default_factory=dict)


def job(*lines: str, name: str = "a", spec: str = "") -> str:
    """Return the manifest of a Job; its fields begin in line 5."""
    return _HEAD.format("Job", name, spec) + textwrap.indent("\n".join(lines), "  ") + "\n"


def flow(*tasks: str, name: str = "etl") -> str:
    """Return the manifest of a Workflow; its tasks begin in line 6."""
    listed = "\n".join(f"- {task}" for task in tasks)
    return _HEAD.format("Workflow", name, "\n  tasks:") + textwrap.indent(listed, "    ") + "\n"


GOOD: Final = job("command: echo hi")

MANIFESTS: Final = (
    Mistake(
        "version of another product",
        "m.yaml:1: apiVersion: must be workron.dev/v1alpha1, found the text 'batch/v1'",
        GOOD.replace("workron.dev/v1alpha1", "batch/v1"),
    ),
    Mistake(
        "version missing",
        "m.yaml:1: apiVersion: is required; write apiVersion: workron.dev/v1alpha1",
        GOOD.partition("\n")[2],
    ),
    Mistake(
        "kind in lower case",
        "m.yaml:2: kind: must be one of Job, Workflow, WorkerPool, found the text 'job';"
        " did you mean Job?",
        GOOD.replace("Job", "job"),
    ),
    Mistake(
        "metadata missing",
        "m.yaml:1: metadata: is required; write metadata: {name: NAME}",
        GOOD.replace("metadata: {name: a}\n", ""),
    ),
    Mistake(
        "name with capitals and a space",
        "m.yaml:3: metadata.name: 'My Job' is not a name: lowercase letters, digits, '-' and '.'",
        job("command: x", name="My Job"),
    ),
    Mistake(
        "name that is a number",
        "m.yaml:3: metadata.name: must be a text, found the number 2024; write it in quotes",
        job("command: x", name="2024"),
    ),
    Mistake(
        "field misspelt",
        "m.yaml:5: spec.comand: there is no such field here; did you mean command?",
        job("comand: echo hi"),
    ),
    Mistake(
        "field in snake case",
        "m.yaml:6: spec.max_attempts: there is no such field here; did you mean maxAttempts?",
        job("command: x", "max_attempts: 3"),
    ),
    Mistake(
        "retries",
        "m.yaml:6: spec.retries: there is no such field here; write maxAttempts, which counts the"
        " first attempt, too: 4 for 3 retries",
        job("command: x", "retries: 3"),
    ),
    Mistake(
        "script of GitLab",
        "m.yaml:5: spec.script: there is no such field here; it is called command",
        job("script: x"),
    ),
    Mistake(
        "image of Kubernetes",
        "m.yaml:6: spec.image: there is no such field here; a command runs in its worker: set this"
        " for the WorkerPool",
        job("command: x", "image: python:3.12"),
    ),
    Mistake(
        "cwd",
        "m.yaml:6: spec.cwd: there is no such field here; it is called workdir",
        job("command: x", "cwd: /data"),
    ),
    Mistake(
        "schedule of cron",
        "m.yaml:6: spec.schedule: there is no such field here; a run starts once; call `workron"
        " submit` from cron",
        job("command: x", "schedule: 0 * * * *"),
    ),
    Mistake(
        "needs without a list of mappings",
        "m.yaml:7: spec.tasks[1].depends: there is no such field here; write dependsOn:"
        " [{name: NAME}]",
        flow("{name: a, command: x}", "{name: b, command: x, depends: [a]}"),
    ),
    Mistake(
        "steps",
        "m.yaml:5: spec.steps: there is no such field here; it is called tasks",
        flow("{name: a, command: x}").replace("tasks:", "steps:"),
    ),
    Mistake(
        "tasks of a Job",
        "m.yaml:5: spec.tasks: there is no such field here; a Job has one command; write kind:"
        " Workflow for tasks",
        flow("{name: a, command: x}").replace("Workflow", "Job"),
    ),
    Mistake(
        "command of a Workflow",
        "m.yaml:5: spec.command: there is no such field here; a Workflow has tasks; write kind: Job"
        " for one command",
        GOOD.replace("Job", "Workflow"),
    ),
    Mistake(
        "task without a name",
        "m.yaml:6: spec.tasks[0].name: is required",
        flow("command: x"),
    ),
    Mistake(
        "two tasks of one name",
        "m.yaml:7: Workflow 'etl': two tasks are named 'a': tasks[0] and tasks[1]; give one of them"
        " another name",
        flow("{name: a, command: x}", "{name: a, command: x}"),
    ),
    Mistake(
        "upstream misspelt",
        "m.yaml:7: Workflow 'etl': task 'load' (tasks[1]) depends on 'extrct', which is not a task"
        " of this workflow; did you mean 'extract'?",
        flow(
            "{name: extract, command: x}",
            "{name: load, command: x, dependsOn: [{name: extrct}]}",
        ),
    ),
    Mistake(
        "upstreams as names",
        "m.yaml:7: spec.tasks[1].dependsOn[0]: must be a mapping, found the text 'a'; write"
        " dependsOn: [{name: NAME}]",
        flow("{name: a, command: x}", "{name: b, command: x, dependsOn: [a]}"),
    ),
    Mistake(
        "tasks in a cycle",
        "m.yaml:6: Workflow 'etl': these tasks depend on each other in a cycle: a -> b -> a; remove"
        " one of these dependencies",
        flow(
            "{name: a, command: x, dependsOn: [{name: b}]}",
            "{name: b, command: x, dependsOn: [{name: a}]}",
        ),
    ),
    Mistake(
        "upstream in no file",
        "Job 'a' depends on Job 'other', which is in none of the files; add its file",
        job("command: x", "dependsOn: [{name: other}]"),
    ),
    Mistake(
        "env as a mapping",
        "m.yaml:6: spec.env: must be a list, found a mapping; write env: [{name: NAME, value:"
        " VALUE}]",
        job("command: x", "env: {A: b}"),
    ),
    Mistake(
        "env as a list of mappings",
        "m.yaml:6: spec.env[0].A: there is no such field here; write {name: A, value: VALUE}",
        job("command: x", "env: [{A: b}]"),
    ),
    Mistake(
        "env of a number",
        "m.yaml:6: spec.env[0].value: must be a text, found the number 8080; write it in quotes",
        job("command: x", "env: [{name: PORT, value: 8080}]"),
    ),
    Mistake(
        "env of a YAML word",
        "m.yaml:6: spec.env[0].value: must be a text, found true (in YAML a plain y, yes, on, n,"
        " no or off is true or false); write it in quotes",
        job("command: x", "env: [{name: DEBUG, value: yes}]"),
    ),
    Mistake(
        "env from a Secret",
        "m.yaml:6: spec.env[0].valueFrom: there is no such field here; write fromEnv: NAME; a"
        " Secret belongs in env of a WorkerPool",
        job("command: x", "env: [{name: A, valueFrom: {secretKeyRef: {name: b, key: c}}}]"),
    ),
    Mistake(
        "env from a variable that is not set",
        "m.yaml:6: the variable API_TOKEN (env[].fromEnv) is not set in the environment of this"
        " command; set it, or give a file that has it: --env-file FILE",
        job("command: x", "env: [{name: A, fromEnv: API_TOKEN}]"),
    ),
    Mistake(
        "command as a list",
        "m.yaml:5: spec.command: must be a text, found a list; write a list of arguments as argv",
        job("command: [echo, hi]"),
    ),
    Mistake(
        "command with a template",
        "m.yaml:5: spec.command: must be a text, found a mapping; quote a text that begins with {",
        job("command: {{ params.command }}"),
    ),
    Mistake(
        "argv as a text",
        "m.yaml:5: spec.argv: must be a list, found the text 'echo hi'; write argv: [PROGRAM,"
        " ARGUMENT], or a command line as command",
        job("argv: echo hi"),
    ),
    Mistake(
        "argv with a number",
        "m.yaml:5: spec.argv[1]: must be a text, found the number 5; write it in quotes",
        job("argv: [sleep, 5]"),
    ),
    Mistake(
        "two commands",
        "m.yaml:4: spec: has two commands; set exactly one of command and argv",
        job("command: x", "argv: [x]"),
    ),
    Mistake(
        "command behind a comment sign",
        "m.yaml:4: spec: has no command; set exactly one of command and argv",
        job("command: # echo hi"),
    ),
    Mistake(
        "spec as a list",
        "m.yaml:4: spec: must be a mapping, found a list; write its fields without a '-' before"
        " them",
        job("- command: x"),
    ),
    Mistake(
        "tasks below spec",
        "m.yaml:4: spec: must be a mapping, found a list; the list belongs in spec.tasks of a"
        " Workflow",
        job("- {name: a, command: x}").replace("Job", "Workflow"),
    ),
    Mistake(
        "tasks as a mapping",
        "m.yaml:5: spec.tasks: must be a list, found a mapping; write tasks: [{name: NAME, command:"
        " COMMAND}]",
        flow().replace("tasks:", "tasks: {a: {command: x}}"),
    ),
    Mistake(
        "tasks as texts",
        "m.yaml:6: spec.tasks[0]: must be a mapping, found the text 'echo hi'; write tasks: [{name:"
        " NAME, command: COMMAND}]",
        flow("echo hi"),
    ),
    Mistake(
        "duration without a unit",
        "m.yaml:6: spec.timeout: 5 has no unit; write it as 90s, 5m, 1h30m or 500ms",
        job("command: x", "timeout: 5"),
    ),
    Mistake(
        "duration in words",
        "m.yaml:6: spec.timeout: '5 minutes' is not a duration; write it as 90s, 5m, 1h30m or"
        " 500ms",
        job("command: x", "timeout: 5 minutes"),
    ),
    Mistake(
        "duration of nothing",
        "m.yaml:6: spec.timeout: must be greater than zero; for no limit, remove the field",
        job("command: x", "timeout: 0s"),
    ),
    Mistake(
        "backoff as a duration",
        "m.yaml:6: spec.backoff: must be a mapping, found the text '5s'; write backoff: {initial:"
        " 5s}",
        job("command: x", "backoff: 5s"),
    ),
    Mistake(
        "no attempts",
        "m.yaml:6: spec.maxAttempts: must be at least 1, found 0",
        job("command: x", "maxAttempts: 0"),
    ),
    Mistake(
        "number in quotes",
        "m.yaml:6: spec.maxAttempts: must be a whole number, found the text '3'; remove the quotes",
        job("command: x", "maxAttempts: '3'"),
    ),
    Mistake(
        "exit codes without a list",
        "m.yaml:6: spec.retryOn: must be a list, found the number 75; write retryOn: [75]",
        job("command: x", "retryOn: 75"),
    ),
    Mistake(
        "items as a pattern",
        "m.yaml:6: spec.tasks[0].items: must be a list, found the text '*.csv'; write items: [a,"
        " b]",
        flow("{name: a, command: x, items: '*.csv'}"),
    ),
    Mistake(
        "count and items",
        "m.yaml:6: spec.tasks[0]: has both count and items; set one of them",
        flow("{name: a, command: x, count: 2, items: [a, b]}"),
    ),
    Mistake(
        "time in words",
        "m.yaml:6: spec.startAfter: 'tomorrow' is not a time with date and zone; write it as"
        " 2026-01-31T08:00:00Z",
        job("command: x", "startAfter: tomorrow"),
    ),
    Mistake(
        "false in quotes",
        "m.yaml:6: spec.suspend: must be true or false, found the text 'false'; remove the quotes",
        job("command: x", "suspend: 'false'"),
    ),
    Mistake(
        "suspended run in memory",
        "Job 'a' is suspended, and no other process can resume it in a store in memory; remove"
        " `suspend: true`",
        job("command: x", "suspend: true"),
    ),
    Mistake(
        "shell with an option",
        "m.yaml:6: spec.shell: 'bash -e' is not a program without arguments; to pass some, write a"
        " list such as [bash, -e, -c]",
        job("command: x", "shell: bash -e"),
    ),
    Mistake(
        "home folder as workdir",
        "m.yaml:4: the workdir '~/data' begins with ~, which only a shell expands; write the full"
        " path, or one that is relative to the file",
        job("command: x", "workdir: ~/data"),
    ),
    Mistake(
        "one name for two objects",
        "m.yaml:9: metadata.name: Job 'a' of namespace 'default' is already in m.yaml:3; give each"
        " its own name",
        GOOD + "---\n" + GOOD.replace("echo", "printf"),
    ),
)

YAML: Final = (
    Mistake(
        "tab",
        "m.yaml:5: is not YAML: found character that cannot start any token; indent with spaces,"
        " not tabs",
        GOOD.replace("  command", "\tcommand"),
    ),
    Mistake(
        "field indented too far",
        "m.yaml:6: is not YAML: mapping values are not allowed in this context; a text that has"
        " ': ' in it needs quotes, or the line is indented too far",
        job("command: x", " timeout: 5s"),
    ),
    Mistake(
        "list indented in two ways",
        "m.yaml:7: is not YAML: did not find expected key, while parsing a block mapping from line"
        " 5; look for a line that is indented differently, or a quote",
        flow("{name: a, command: x}").replace("    -", "  -") + "   - {name: b, command: x}\n",
    ),
    Mistake(
        "quote not closed",
        "m.yaml:6: is not YAML: found unexpected end of stream, while scanning a quoted scalar from"
        " line 5; a quote is not closed",
        job('command: "echo hi'),
    ),
    Mistake(
        "bracket not closed",
        "m.yaml:6: is not YAML: did not find expected ',' or ']', while parsing a flow sequence"
        " from line 5; a bracket is not closed, or a comma is missing",
        job("argv: [echo, hi"),
    ),
    Mistake(
        "colon in a command",
        "m.yaml:5: is not YAML: mapping values are not allowed in this context; a text that has"
        " ': ' in it needs quotes",
        job("command: echo key: value"),
    ),
    Mistake(
        "no space after a colon",
        "m.yaml:4: spec: must be a mapping, found the text 'command:echo'; a space must follow each"
        " ':'",
        job("command:echo"),
    ),
    Mistake(
        "command with a star",
        "m.yaml:5: is not YAML: did not find expected alphabetic or numeric character; quote a text"
        " that begins with '*' or '&'",
        job("command: *.csv"),
    ),
    Mistake(
        "command with a percent sign",
        "m.yaml:5: is not YAML: found character that cannot start any token; quote a text that"
        " begins with this character",
        job("command: %run"),
    ),
    Mistake(
        "path of Windows in quotes",
        "m.yaml:5: is not YAML: found unknown escape character; in double quotes write \\\\ for one"
        " \\, or use single quotes",
        job('command: "C:\\data\\run"'),
    ),
    Mistake(
        "field given twice",
        "m.yaml:6: spec.command: is given twice, first in line 5; give it once",
        job("command: x", "command: z"),
    ),
    Mistake(
        "list of objects",
        "m.yaml:1: an object is a mapping, found a list; separate objects by lines with ---",
        "- apiVersion: workron.dev/v1alpha1\n",
    ),
    Mistake(
        "script instead of a manifest",
        "m.yaml:1: is a script, not a manifest; name it in the command of a Job",
        "#!/bin/sh\necho hi\n",
    ),
    Mistake(
        "program text instead of a manifest",
        "m.yaml:1: an object is a mapping, found the text 'import os print(os.getcwd())'; a"
        " manifest begins with apiVersion, kind, metadata and spec",
        "import os\nprint(os.getcwd())\n",
    ),
    Mistake("empty file", "m.yaml: has no object; add a Job or Workflow or WorkerPool"),
    Mistake(
        "file that is not UTF-8",
        "m.yaml:1: byte 0xe9 is not UTF-8; save it as UTF-8",
        b"# \xe9t\xe9\n",
    ),
)
