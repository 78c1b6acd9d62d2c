"""The start of the program: it imports only what it uses, and handles Ctrl-C at any moment."""

import signal
import subprocess
import sys

import pytest

_MAIN = "from workron.cli import main; main()"


def _python(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", program, *arguments],
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("module", ["typer", "structlog", "rich.console", "sqlite3"])
def test_program_exits_quietly_when_an_interrupt_arrives_during_its_imports(module: str) -> None:
    interrupt = f"""
import os, signal, sys

class Finder:
    def find_spec(self, name, *_):
        if name == {module!r}:
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Finder())
"""
    result = _python(interrupt + _MAIN, "run", "examples/job.yaml")
    assert (result.returncode, result.stderr) == (130, "")


@pytest.mark.parametrize(
    ("arguments", "more"),
    [
        (["get", "--help"], set()),
        (["--help"], {"asyncio", "rich.console", "pydantic", "workron.cli.listing"}),
        (["version"], {"asyncio", "rich.console", "pydantic", "workron.cli.listing"}),
    ],
)
def test_command_imports_only_what_it_uses(arguments: list[str], more: set[str]) -> None:
    result = _python(
        f"import sys\ntry:\n    {_MAIN}\nfinally:\n    print(*sys.modules, file=sys.stderr)",
        *arguments,
    )
    heavy = {"asyncpg", "structlog", "yaml", "rich.live", "sqlite3"} | more
    assert heavy & set(result.stderr.split()) == set()


def test_run_does_not_import_postgresql_when_the_store_is_in_memory() -> None:
    result = _python(
        f"import sys\ntry:\n    {_MAIN}\nfinally:\n    print(*sys.modules)",
        "run",
        "examples/job.yaml",
    )
    assert "Succeeded" in result.stdout
    assert "asyncpg" not in result.stdout.split()


_AS_THE_FIRST = """
import os, signal
from workron.cli import init_process

os.getpid, own = lambda: 1, os.getpid()
init_process.handle_signals()
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_init_process_exits_when_a_signal_has_no_handler(number: signal.Signals) -> None:
    result = _python(f"{_AS_THE_FIRST}os.kill(own, {number:d})\nprint('still here')")
    assert (result.returncode, result.stdout) == (128 + number, "")


def test_init_process_keeps_no_zombies() -> None:
    result = _python(
        f"{_AS_THE_FIRST}if not (child := os.fork()):\n    os._exit(3)\n"
        "try:\n    os.waitpid(child, 0)\nexcept ChildProcessError:\n    print('reaped')"
    )
    assert (result.returncode, result.stdout) == (0, "reaped\n")


def test_signals_are_unchanged_when_the_process_is_not_init() -> None:
    result = _python(
        "import signal as s\nfrom workron.cli import init_process\ninit_process.handle_signals()\n"
        "print({s.getsignal(one) for one in (s.SIGTERM, s.SIGHUP, s.SIGCHLD)} == {s.SIG_DFL})"
    )
    assert result.stdout == "True\n"
