"""Commands start with the program, signals and descriptors that a shell would give them."""

import pathlib
from typing import Any

import pytest

from tests.runner.fake_agent import FakeAgent
from workron_runner import spawn


def test_refusal_names_the_fault_when_a_start_fails(agent: FakeAgent) -> None:
    refused = agent.refused(agent.run(["no-such-program"]))
    assert (refused.fault, refused.path) == ("job", "no-such-program")
    assert agent.refused(agent.run("true", workdir="/no/such")).path == "/no/such"
    agent.folder.rename(agent.folder.with_name("elsewhere"))
    for inputs, words in [("{}", "was removed"), ("[]", "cannot create a folder")]:
        refused = agent.refused(agent.run("true", inputs=inputs))
        assert refused.fault == "machine"
        assert words in refused.message


def test_start_error_is_not_a_job_fault_when_it_is_unexpected() -> None:
    assert spawn.classify_start_error(MemoryError("no")) == ("machine", "MemoryError: no", None)


@pytest.mark.parametrize(
    "fields",
    [{"argv": ["echo", "a\0b"]}, {"environment": {"A": "a\0b"}}, {"workdir": "a\0b"}],
    ids=["argument", "variable", "workdir"],
)
def test_start_is_refused_as_a_job_fault_when_a_word_contains_a_nul(
    agent: FakeAgent, fields: dict[str, Any]
) -> None:
    refused = agent.refused(agent.run("true", **fields))
    assert refused.fault == "job"
    assert "contains a NUL" in refused.message


def test_program_is_found_when_only_its_own_path_variable_has_it(
    agent: FakeAgent, tmp_path: pathlib.Path
) -> None:
    program = tmp_path / "mine"
    program.write_text("#!/bin/sh\necho found\n")
    program.chmod(0o755)
    claim = agent.run(["mine"], environment={"PATH": str(tmp_path)})
    assert agent.ended(claim).exit_code == 0
    assert agent.captured[claim] == b"found\n"


def test_command_starts_with_no_blocked_or_ignored_signals(agent: FakeAgent) -> None:
    claim = agent.run("grep -E 'Sig(Blk|Ign)' /proc/self/status")
    agent.ended(claim)
    masks = [int(line.split()[1], 16) for line in agent.captured[claim].splitlines()]
    # Those above are real-time signals that the C library keeps to itself.
    assert [mask & 0x7FFF_FFFF for mask in masks] == [0, 0]


def test_command_inherits_only_standard_descriptors_when_others_are_running(
    agent: FakeAgent,
) -> None:
    others = [agent.run("echo on; exec sleep 1000") for _ in range(3)]
    for other in others:
        agent.read_line(other)
    claim = agent.run("echo /proc/self/fd/*")
    agent.ended(claim)
    # The third is the folder that the shell reads.
    assert len(agent.captured[claim].split()) <= 4
