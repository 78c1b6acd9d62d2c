"""An error is printed as one line with its exit code, and without a traceback."""

import pathlib
import subprocess
import sys

import pytest

from tests.cli.conftest import Call
from workron.cli import exit_codes
from workron.core import errors
from workron_controller.jobs import object_parser
from workron_controller.kube.errors import ApiError
from workron_worker import outcome
from workron_worker.executor import RunnerLostError, StartError

# Their errors are known once they are imported.
_MODULES = (object_parser, outcome)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.ManifestError(["a.yaml:1: wrong"]), 2),
        (errors.GraphError("a cycle"), 2),
        (errors.NotFoundError("nobody"), 4),
        (errors.StoreUnreachableError("db:5432 does not answer"), 3),
        (errors.StateError("it has ended"), 2),
    ],
)
def test_error_is_printed_with_its_exit_code(
    call: Call, monkeypatch: pytest.MonkeyPatch, error: errors.WorkronError, code: int
) -> None:
    _raise(monkeypatch, error)
    result = call("validate", "x")
    assert (result.code, result.err) == (code, f"workron: {error}\n")


def test_every_error_has_the_exit_code_of_its_kind() -> None:
    codes = {one: one.exit_code for one in _below(errors.WorkronError)}
    assert set(codes.values()) <= set(exit_codes.MEANINGS) - {exit_codes.OK}
    kinds: dict[type[errors.WorkronError], int] = {
        errors.InputError: exit_codes.BAD_INPUT,
        errors.StateError: exit_codes.BAD_INPUT,
        errors.StoreError: exit_codes.STORE,
        errors.NotFoundError: exit_codes.NOT_FOUND,
        ApiError: exit_codes.STORE,
        StartError: exit_codes.FAILED,
        RunnerLostError: exit_codes.FAILED,
    }
    for error, code in codes.items():
        assert [code] == [kinds[kind] for kind in kinds if issubclass(error, kind)], error


def _below(kind: type[errors.WorkronError]) -> set[type[errors.WorkronError]]:
    """All kinds of errors of the product below this one; tests may define their own."""
    below = {one for one in kind.__subclasses__() if one.__module__.startswith("workron")}
    return below.union(*map(_below, below))


def test_lines_are_cut_off_when_there_are_too_many_problems(
    call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    _raise(monkeypatch, errors.ManifestError([f"line {number}" for number in range(1000)]))
    lines = call("validate", "x").err.splitlines()
    assert (lines[0], lines[-1]) == ("workron: line 0", "workron: and 950 more")


def test_control_sequences_are_removed_when_an_error_is_printed(
    call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    _raise(monkeypatch, errors.InputError("a\x1b[2Jb\rc\x07"))
    assert call("validate", "x").err == "workron: abc\n"


def test_unexpected_error_is_one_line(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    _raise(monkeypatch, ZeroDivisionError("division by zero"))
    result = call("validate", "x")
    assert result.code == 1
    assert result.err.count("\n") == 1
    assert "ZeroDivisionError: division by zero; set WORKRON_DEBUG=1" in result.err


def test_traceback_is_printed_when_debugging(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORKRON_DEBUG", "1")
    _raise(monkeypatch, errors.InputError("wrong"))
    with pytest.raises(errors.InputError):
        call("validate", "x")


def test_full_disk_is_reported_once_when_standard_output_is_a_file() -> None:
    with pathlib.Path("/dev/full").open("w") as full:
        result = subprocess.run(
            [sys.executable, "-m", "workron", "version"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert (result.returncode, result.stderr) == (
        1, "workron: standard output: No space left on device\n",
    )  # fmt: skip


def test_libraries_print_no_traceback() -> None:
    program = (
        "import logging; from workron.telemetry import logging as log; log.silence_libraries();"
        "logging.getLogger('asyncpg').error('lost', exc_info=ValueError('why'))"
    )
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert (result.returncode, result.stderr) == (0, "")


def _raise(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr("workron.cli.manifest_files.manifests", fail)
