"""Several processes share one store, one is killed, and every job ends once."""

import collections
import pathlib
import signal
import textwrap

from e2e.conftest import Start
from e2e.store import Call

_JOBS = 60

# A job waits until the test lets it go on, and appends a line to a log when it ends. Each line is
# one write, so lines never mix.
_WORKFLOW = """
    apiVersion: workron.dev/v1alpha1
    kind: Workflow
    metadata: {{name: many}}
    spec:
      tasks:
        - name: work
          count: {jobs}
          command: |
            until test -e {folder}/go-$WORKRON_ATTEMPT; do sleep 0.02; done
            echo "$WORKRON_INDEX $WORKRON_ATTEMPT" >> {folder}/log
        - name: after
          dependsOn: [{{name: work}}]
          command: echo after 1 >> {folder}/log
    """


def _count_ends(folder: pathlib.Path) -> collections.Counter[str]:
    lines = (folder / "log").read_text().splitlines()
    return collections.Counter(line.split()[0] for line in lines)


def test_jobs_end_once_when_one_of_two_processes_is_killed(
    call: Call, start: Start, database: str, tmp_path: pathlib.Path
) -> None:
    flow = tmp_path / "many.yaml"
    flow.write_text(textwrap.dedent(_WORKFLOW.format(jobs=_JOBS, folder=tmp_path)))
    assert call("migrate", "--store", database).returncode == 0
    run = ("run", flow, "--store", database, "--slots", 8)
    killed, other = start(*run), start(*run)
    _wait_for_running(call, database, 16)
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    for attempt in (1, 2):
        (tmp_path / f"go-{attempt}").touch()
    # The commands of the killed process still run; running it again ends them first.
    again = call(*run)
    result, _ = other.communicate(timeout=120)
    assert (again.returncode, other.returncode) == (0, 0), again.stdout + again.stderr + result
    assert call("wait", "many", "--store", database).returncode == 0
    ends = _count_ends(tmp_path)
    assert set(ends) == {*map(str, range(_JOBS)), "after"}
    assert ends["after"] == 1


def _wait_for_running(call: Call, database: str, count: int) -> None:
    running = 0
    for _ in range(200):
        running = call("get", "many", "--store", database).stdout.count("Running")
        if running >= count:
            return
    raise AssertionError(f"only {running} of {count} jobs ran at once")
