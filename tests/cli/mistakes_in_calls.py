"""Mistakes in calls of the program, and commands that fail; see `tests.cli.mistakes`."""

from typing import Final

from tests.cli.mistakes import GOOD, Mistake, flow, job

CALLS: Final = (
    Mistake("no file", "Missing argument 'FILE...'", arguments=("run",)),
    Mistake(
        "missing file",
        "workron: nowhere.yaml: No such file or directory; give a manifest file",
        arguments=("run", "nowhere.yaml"),
    ),
    Mistake(
        "folder instead of a file",
        "workron: .: Is a directory; give a manifest file",
        arguments=("run", "."),
    ),
    Mistake(
        "command misspelt", "No such command 'rnu'. Did you mean 'run'?", arguments=("rnu", "x")
    ),
    Mistake(
        "option misspelt",
        "No such option: --stor",
        GOOD,
        ("run", "m.yaml", "--stor", "x"),
    ),
    Mistake(
        "format of another tool",
        "'xml' is not one of: table, json",
        GOOD,
        ("run", "m.yaml", "-o", "xml"),
    ),
    Mistake(
        "namespace with capitals",
        "workron: --namespace: 'My_Team' is not a name: lowercase letters, digits and '-'",
        GOOD,
        ("run", "m.yaml", "-n", "My_Team"),
    ),
    Mistake(
        "empty standard input",
        "workron: standard input: has no object; add a Job or Workflow or WorkerPool",
        arguments=("run", "-"),
    ),
    Mistake(
        "standard input twice",
        "workron: standard input can be read only once: give - once",
        stdin=GOOD,
        arguments=("run", "-", "-"),
    ),
    Mistake(
        "wrong indentation on standard input",
        "workron: standard input:5: is not YAML: found character that cannot start any token",
        stdin=GOOD.replace("  command", "\tcommand"),
        arguments=("run", "-"),
    ),
    Mistake(
        "export in a file of variables",
        "workron: m.yaml:1: `export` is not allowed here; write NAME=VALUE",
        "export A=b\n",
        ("run", "m.yaml", "--env-file", "m.yaml"),
    ),
    Mistake(
        "missing file of variables",
        "workron: --env-file: .env: No such file or directory",
        GOOD,
        ("run", "m.yaml", "--env-file", ".env"),
    ),
    Mistake(
        "path instead of a URL",
        "'jobs.db' is not the URL of a store: a store is `memory:`, `sqlite:///path/to/file` or"
        " `postgresql://user@host:5432/database`",
        GOOD,
        ("run", "m.yaml", "--store", "jobs.db"),
    ),
    Mistake(
        "URL of a file with two slashes",
        "'sqlite://jobs.db' does not name a file: a store is `memory:`, `sqlite:///path/to/file`",
        GOOD,
        ("run", "m.yaml", "--store", "sqlite://jobs.db"),
    ),
    Mistake(
        "store in a folder that does not exist",
        "nowhere/jobs.db: unable to open database file: the directory nowhere does not exist; make"
        " it first",
        GOOD,
        ("run", "m.yaml", "--store", "sqlite:///nowhere/jobs.db"),
        3,
    ),
    Mistake(
        "manifest as a store",
        "m.yaml: file is not a database: it is not a SQLite database; name another file",
        GOOD,
        ("run", "m.yaml", "--store", "sqlite:///m.yaml"),
        3,
    ),
    Mistake(
        "no store",
        "workron: no store given: use --store URL, set WORKRON_STORE",
        arguments=("get",),
    ),
    Mistake(
        "store that was never written",
        "workron: jobs.db does not exist; `workron run`, `workron submit` or `workron migrate`"
        " creates it",
        arguments=("get", "--store", "sqlite:///jobs.db"),
    ),
    Mistake(
        "store that no other process sees",
        "workron: a memory: store is empty, because it ends with the command that created it; use"
        " sqlite:///path or postgresql://user@host/database, or `workron run`",
        arguments=("get", "--store", "memory:"),
    ),
    Mistake(
        "database server that is not running",
        "cannot connect to postgresql://127.0.0.1:1/jobs: connection refused. Is the server"
        " running? Try: pg_isready -h 127.0.0.1 -p 1",
        GOOD,
        ("run", "m.yaml", "--store", "postgresql://127.0.0.1:1/jobs"),
        3,
    ),
    Mistake(
        "host misspelt",
        "cannot connect to postgresql://db.invalid/jobs: the name of the host is not known; check"
        " the host in the URL",
        GOOD,
        ("run", "m.yaml", "--store", "postgresql://db.invalid/jobs"),
        3,
    ),
    Mistake(
        "port that is not a number",
        "cannot connect to postgresql://db:port/jobs: the port in the URL must be a number",
        GOOD,
        ("run", "m.yaml", "--store", "postgresql://db:port/jobs"),
        3,
    ),
)
"""Calls that nothing precedes."""

STORED: Final = (
    Mistake(
        "run misspelt",
        "no Job or Workflow 'elt' in namespace 'default'",
        arguments=("describe", "elt"),
        code=4,
    ),
    Mistake(
        "task misspelt",
        "Workflow 'etl' has no 'lod'; its tasks: load, many",
        arguments=("output", "etl/lod"),
        code=4,
    ),
    Mistake(
        "output of a whole workflow",
        "'etl' is not a single job; name one of its jobs, like etl/TASK",
        arguments=("output", "etl"),
    ),
    Mistake(
        "element beyond the end of an array",
        "Workflow 'etl' has no 'many/7': many has elements 0 to 1",
        arguments=("output", "etl/many/7"),
        code=4,
    ),
    Mistake(
        "other content under the name of an unfinished run",
        "Workflow default/etl is unfinished and has other content; cancel it, wait until it ends,"
        " or use another name",
        flow("{name: other, command: x}"),
        ("submit", "m.yaml"),
    ),
    Mistake(
        "timeout without a unit",
        "workron: --timeout: '30' is not a duration; write it as 90s, 5m, 1h30m or 500ms",
        arguments=("wait", "etl", "--timeout", "30"),
    ),
    Mistake(
        "variable of the caller in a submission",
        "m.yaml:6: fromEnv takes HOME from the environment of `workron run` and works only there;"
        " write a value",
        job("command: x", "env: [{name: A, fromEnv: HOME}]"),
        ("submit", "m.yaml"),
    ),
    Mistake(
        "relative workdir in a submission",
        "m.yaml:6: the workdir 'data' is relative; only `workron run` resolves it, from the folder"
        " of the file: write an absolute path",
        job("command: x", "workdir: data"),
        ("submit", "m.yaml"),
    ),
)
"""Calls on a store that has the queued workflow `etl` with the tasks `load` and `many`."""

_FOLDER: Final = (
    "a command runs in a new, empty folder; to run it in the folder of the manifest, add"
    " `workdir: .`"
)
_BASH: Final = "the command runs in sh, and this is a feature of bash; add `shell: bash`"
_VARIABLE: Final = (
    "MY_VAR is set in your shell, but not passed to commands; add env: [{name: MY_VAR, fromEnv:"
    " MY_VAR}]"
)


def _failing(name: str, message: str, *lines: str) -> Mistake:
    """A job that fails at its first attempt."""
    file = job("maxAttempts: 1", *lines)
    return Mistake(name, message, file, code=1, environ={"MY_VAR": "a value that is not printed"})


RUNS: Final = (
    _failing("script beside the manifest", _FOLDER, "command: python3 script.py"),
    _failing("data beside the manifest", _FOLDER, "command: cat data.csv"),
    _failing("program beside the manifest", _FOLDER, "command: ./script.sh"),
    _failing("program beside the manifest, without a shell", _FOLDER, "argv: [./script.sh]"),
    _failing(
        "file in the home folder",
        "HOME of a command is its new, empty folder; for yours, add env: [{name: HOME, fromEnv:"
        " HOME}]",
        "command: cat ~/.netrc",
    ),
    _failing(
        "workdir that does not exist",
        "its folder, workdir '/nowhere/data': No such file or directory; create it, or change"
        " workdir",
        "command: ls",
        "workdir: /nowhere/data",
    ),
    _failing("variable of the shell", _VARIABLE, 'command: test "$MY_VAR" = x'),
    _failing("variable of the shell, unset", _VARIABLE, "command: 'set -u; echo $MY_VAR'"),
    _failing(
        "variable of the shell in Python",
        _VARIABLE,
        "argv: [python3, -c, 'import os; os.environ[\"MY_VAR\"]']",
    ),
    _failing(
        "variable that nothing sets",
        "nothing sets NO_SUCH_VAR: add it to env: [{name: NO_SUCH_VAR, value: …}]",
        "command: 'set -u; echo $NO_SUCH_VAR'",
    ),
    _failing(
        "first line that failed",
        "line 1 of the command failed, and the shell went on with the next one; begin the command"
        " with `set -e`",
        "command: |\n    cd /nowhere\n    false",
    ),
    _failing(
        "earlier line that failed",
        "the exit code is that of the last of 2 lines; to stop at the first that fails, begin the"
        " command with `set -e`",
        "command: |\n    ls /nowhere\n    false",
    ),
    _failing("test of bash", _BASH, "command: '[[ a == b ]]'"),
    _failing("array of bash", _BASH, "command: 'a=(1 2); echo ${a[1]}'"),
    _failing(
        "program that is not installed",
        "no-such-program is in no folder of PATH: install it, or write its full path",
        "command: no-such-program --help",
    ),
    _failing(
        "program that is not installed, without a shell",
        "the command could not be started: 'no-such-program' is in no folder of PATH; install it,"
        " or write its full path",
        "argv: [no-such-program, --help]",
    ),
    _failing(
        "shell that is not installed",
        "the command could not be started: its shell 'no-such-shell' is in no folder of PATH",
        "command: ls",
        "shell: no-such-shell",
    ),
    _failing(
        "file that is not executable",
        "the file is not executable: run `chmod +x /etc/passwd`, or write `sh /etc/passwd`",
        "command: /etc/passwd",
    ),
    _failing(
        "command line as argv",
        "argv runs without a shell; write a command line as `command: …`",
        "argv: ['echo hi | wc -l']",
    ),
    _failing(
        "module that is not installed",
        "the first python on PATH has no no_such_module: activate its environment before `workron"
        " run`",
        "command: python3 -m no_such_module",
    ),
    _failing(
        "question on standard input",
        "the standard input of a command is empty; pass values by env, items or a file",
        "argv: [python3, -c, input()]",
    ),
    _failing(
        "command that takes too long",
        "the command ran longer than 0.1 s",
        "command: sleep 600",
        "timeout: 100ms",
    ),
    _failing(
        "result that is not JSON",
        "the result is not JSON",
        "command: echo done > $WORKRON_RESULT",
    ),
    _failing(
        "result that is too large",
        "the result is larger than 16384 bytes",
        "command: head -c 20000 /dev/zero > $WORKRON_RESULT",
    ),
    # A workflow, because the bytes of a single Job are printed unchanged, and the test reads text.
    Mistake(
        "binary output",
        "the command ended with exit code 3",
        flow(
            "{name: b, command: head -c 3000 /dev/urandom; exit 3, maxAttempts: 1}",
            "{name: c, command: echo}",
        ),
        code=1,
    ),
    _failing(
        "large output",
        "the command ended with exit code 3",
        "command: head -c 3000000 /dev/zero | tr '\\0' x; exit 3",
    ),
)
"""Jobs that fail; the hint is printed with the failure."""
