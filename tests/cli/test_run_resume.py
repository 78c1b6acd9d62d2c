"""`workron run` repeated after its process was killed, was stopped, or has ended."""

import asyncio
import contextlib
import json
import os
import pathlib
import signal
import subprocess

import pytest

from tests.cli.conftest import Call, Start, Write
from workron.cli import system_clock
from workron.store import connect

# The first attempt of `second` writes its pid, and waits. A later one checks whether that process
# still runs: a dead process has no command line.
_FLOW = """
apiVersion: workron.dev/v1alpha1
kind: Workflow
metadata: {{name: flow}}
spec:
  tasks:
    - name: first
      command: echo first >> {0}/log
    - name: second
      dependsOn: [{{name: first}}]
      command: |
        echo second $WORKRON_ATTEMPT >> {0}/log
        if [ "$WORKRON_ATTEMPT" != 1 ]; then
          if grep -q sleep "/proc/$(cat {0}/pid)/cmdline"; then echo orphan >> {0}/log; fi
          exit 0
        fi
        echo $$ > {0}/pid
        echo $$ > {0}/on
        exec sleep 1000
    - name: third
      dependsOn: [{{name: second}}]
      command: echo third >> {0}/log
"""


@pytest.fixture
def flow(tmp_path: pathlib.Path) -> pathlib.Path:
    os.mkfifo(tmp_path / "on")
    path = tmp_path / "flow.yaml"
    path.write_text(_FLOW.format(tmp_path))
    return path


def _log(tmp_path: pathlib.Path) -> list[str]:
    return (tmp_path / "log").read_text().splitlines()


def _wait_for_second(tmp_path: pathlib.Path) -> int:
    return int((tmp_path / "on").read_text())


def _is_asleep(pid: int) -> bool:
    return b"sleep" in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()


def _kill_with_its_runner(run: subprocess.Popen[str]) -> None:
    """Kill both at once, so that neither kills the processes that the other one leaves."""
    run.send_signal(signal.SIGSTOP)
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            if stat.read_text().rpartition(")")[2].split()[1] == str(run.pid):
                os.kill(int(stat.parent.name), signal.SIGKILL)
    run.kill()
    run.communicate()


def test_commands_are_killed_when_the_run_is_killed(
    start: Start, flow: pathlib.Path, tmp_path: pathlib.Path, url: str
) -> None:
    run = start("run", flow, "--store", url)
    command = _wait_for_second(tmp_path)
    run.kill()
    # The runner has the pipe open until it has killed all processes.
    run.communicate()
    assert not pathlib.Path(f"/proc/{command}").exists()


def test_orphans_are_killed_and_the_run_resumes_when_run_and_runner_were_killed(
    call: Call, start: Start, flow: pathlib.Path, tmp_path: pathlib.Path, url: str
) -> None:
    run = start("run", flow, "--store", url)
    orphan = _wait_for_second(tmp_path)
    _kill_with_its_runner(run)
    assert _is_asleep(orphan)
    result = call("run", flow, "--store", url)
    assert result.code == 0, result
    assert _log(tmp_path) == ["first", "second 1", "second 2", "third"]
    assert "ended 1 process of a dead worker" in result.out
    assert "resuming flow: 1 of 3 jobs have ended" in result.out


def test_resumed_run_reports_only_new_ends(
    call: Call, start: Start, flow: pathlib.Path, tmp_path: pathlib.Path, url: str
) -> None:
    run = start("run", flow, "--store", url)
    _wait_for_second(tmp_path)
    run.kill()
    run.communicate()
    out = call("run", flow, "--store", url).out
    assert [line.split()[1] for line in out.splitlines() if line.startswith("Succeeded  ")] == [
        "flow/second", "flow/third",
    ]  # fmt: skip
    assert "3 succeeded; 1 of them ended before this start" in out


def test_output_file_is_kept_when_an_earlier_process_completed_it(
    call: Call, start: Start, tmp_path: pathlib.Path, url: str
) -> None:
    flow = tmp_path / "long.yaml"
    os.mkfifo(tmp_path / "on")
    long = "head -c 300000 /dev/zero | tr '\\0' x".replace("\\\\", "\\")
    flow.write_text(_FLOW.format(tmp_path).replace("command: echo first", f"command: {long}; echo"))
    run = start("run", flow, "--store", url, "--output-dir", tmp_path / "logs")
    _wait_for_second(tmp_path)
    run.kill()
    run.communicate()
    assert call("run", flow, "--store", url, "--output-dir", tmp_path / "logs").code == 0
    assert (tmp_path / "logs/flow.first.log").stat().st_size == 300_000
    assert len(call("output", "flow/first", "--store", url).out) < 100_000


def test_killed_processes_are_reported_when_the_file_is_refused(
    call: Call, start: Start, flow: pathlib.Path, tmp_path: pathlib.Path, url: str
) -> None:
    run = start("run", flow, "--store", url)
    _wait_for_second(tmp_path)
    _kill_with_its_runner(run)
    flow.write_text(flow.read_text().replace("echo third", "echo another"))
    result = call("run", flow, "--store", url)
    assert result.code == 2
    assert "ended 1 process of a dead worker" in result.out
    assert "has other content" in result.err


def test_jobs_of_other_runs_are_requeued_when_an_interrupt_arrives_at_the_end(
    call: Call, start: Start, write: Write, tmp_path: pathlib.Path, url: str
) -> None:
    os.mkfifo(tmp_path / "on")
    other = write("other", f"name: a, command: 'echo > {tmp_path}/on; sleep 1000'")
    call("submit", other, "--store", url)
    mine = write("mine", command=f"cat {tmp_path}/on")
    run = start("run", mine, "--store", url, "--slots", "2")
    _read_until(run, "finishing other/a of other runs; press Ctrl-C to requeue them")
    run.send_signal(signal.SIGINT)
    run.communicate()
    assert run.returncode == 0
    assert "Queued" in call("describe", "other/a", "--store", url).out


async def test_message_is_printed_when_another_process_drained_the_worker(
    start: Start, write: Write, tmp_path: pathlib.Path, url: str
) -> None:
    for name in ("on", "go"):
        os.mkfifo(tmp_path / name)
    first = f"name: a, command: 'echo > {tmp_path}/on; cat {tmp_path}/go'"
    run = start("run", write("flow", first, "name: b, command: echo, dependsOn: [{name: a}]"),
                "--store", url)  # fmt: skip
    await asyncio.to_thread((tmp_path / "on").read_text)
    store = await connect.connect(url, clock=system_clock.CLOCK, rng=system_clock.RNG)
    [worker] = await store.list_heartbeats()
    assert await store.drain(worker.worker)
    before = worker.version
    while (await store.list_heartbeats())[0].version == before:
        await asyncio.sleep(0.01)
    await store.close()
    await asyncio.to_thread((tmp_path / "go").write_text, "go")
    out, _ = await asyncio.to_thread(run.communicate)
    assert run.returncode == 1
    assert "this worker was drained by another process and takes no more jobs" in out
    assert "repeat the same command to resume" in out


def test_no_loss_is_counted_when_a_run_is_killed(
    call: Call, start: Start, flow: pathlib.Path, tmp_path: pathlib.Path, url: str
) -> None:
    run = start("run", flow, "--store", url)
    _wait_for_second(tmp_path)
    run.kill()
    run.communicate()
    call("run", flow, "--store", url)
    result = call("describe", "flow/second", "--store", url)
    assert "2 attempts, 0 failures, 0 losses" in result.out


def test_second_interrupt_stops_running_jobs_and_the_next_run_resumes(
    call: Call, start: Start, flow: pathlib.Path, tmp_path: pathlib.Path, url: str
) -> None:
    run = start("run", flow, "--store", url)
    sleeper = _wait_for_second(tmp_path)
    run.send_signal(signal.SIGINT)
    _read_until(run, "press Ctrl-C again")
    run.send_signal(signal.SIGINT)
    out, _ = run.communicate()
    assert run.returncode == 130
    assert "repeat the same command to resume" in out
    assert not pathlib.Path(f"/proc/{sleeper}/cmdline").exists() or not _is_asleep(sleeper)
    assert call("run", flow, "--store", url).code == 0
    assert _log(tmp_path) == ["first", "second 1", "second 2", "third"]


def test_running_commands_finish_when_the_first_interrupt_arrives(
    start: Start, write: Write, tmp_path: pathlib.Path
) -> None:
    for name in ("on", "go"):
        os.mkfifo(tmp_path / name)
    one = f"name: one, command: 'echo > {tmp_path}/on; cat {tmp_path}/go; echo > {tmp_path}/done'"
    flow = write("flow", one, "name: two, command: 'true', dependsOn: [{name: one}]")
    run = start("run", flow)
    (tmp_path / "on").read_text()
    run.send_signal(signal.SIGINT)
    _read_until(run, "finishing 1 job; press Ctrl-C again to stop")
    (tmp_path / "go").write_text("go")
    out, _ = run.communicate()
    assert run.returncode == 130
    assert "1 succeeded, 1 " in out
    assert (tmp_path / "done").exists()


def test_running_jobs_are_stopped_when_the_run_is_terminated(
    start: Start, flow: pathlib.Path, tmp_path: pathlib.Path, url: str
) -> None:
    run = start("run", flow, "--store", url)
    _wait_for_second(tmp_path)
    run.terminate()
    run.communicate()
    assert run.returncode == 128 + signal.SIGTERM


def _read_until(run: subprocess.Popen[str], words: str) -> None:
    assert run.stdout is not None
    for line in run.stdout:
        if words in line:
            return
    pytest.fail(f"the run ended and did not say {words!r}")


def test_succeeded_run_is_executed_again(
    call: Call, write: Write, tmp_path: pathlib.Path, url: str
) -> None:
    job = write("hello", command=f"echo ran >> {tmp_path}/log")
    assert [call("run", job, "--store", url).code for _ in range(2)] == [0, 0]
    assert _log(tmp_path) == ["ran", "ran"]


def test_failed_run_is_executed_again(
    call: Call, write: Write, tmp_path: pathlib.Path, url: str
) -> None:
    job = write("hello", command=f"mkdir {tmp_path}/once && exit 1", more="maxAttempts: 1")
    assert call("run", job, "--store", url).code == 1
    (tmp_path / "once").rmdir()
    assert call("run", job, "--store", url).code == 1


def test_file_is_refused_when_an_unfinished_run_of_its_name_has_other_content(
    call: Call, write: Write, url: str
) -> None:
    assert call("submit", write("hello", command="true"), "--store", url).code == 0
    result = call("run", write("hello", command="false"), "--store", url)
    assert result.code == 2
    assert "hello is unfinished and has other content" in result.err
    assert "to stop it, use `workron cancel`" in result.err


def test_submitted_job_is_executed_when_the_same_file_is_run(
    call: Call, write: Write, url: str
) -> None:
    job = write("hello")
    call("submit", job, "--store", url)
    result = call("run", job, "--store", url)
    assert (result.code, result.out.count("Succeeded  hello")) == (0, 1)


def test_claims_do_not_exceed_the_slots(
    call: Call, start: Start, write: Write, tmp_path: pathlib.Path, url: str
) -> None:
    os.mkfifo(tmp_path / "on")
    flow = write("flow", f"name: many, count: 3, command: 'echo > {tmp_path}/on; sleep 1000'")
    run = start("run", flow, "--store", url, "--slots", "1")
    (tmp_path / "on").read_text()
    items = json.loads(call("get", "flow", "-o", "json", "--store", url).out)["items"]
    run.terminate()
    run.communicate()
    assert sorted(item["status"]["phase"] for item in items[1:]) == ["Queued", "Queued", "Running"]
