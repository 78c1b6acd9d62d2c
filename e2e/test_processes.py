"""Several processes share one store, some of them are killed, and every job ends once."""

import collections
import pathlib
import signal
import textwrap

from e2e.conftest import Start
from e2e.store import Call

_JOBS = 60

# A job tells that it began, waits for the test to let it go on, and writes down that it ended: a
# line of the ledger is one write, so lines never mix.
_FLOW = """
    apiVersion: workron.dev/v1alpha1
    kind: Workflow
    metadata: {{name: many}}
    spec:
      tasks:
        - name: work
          count: {jobs}
          command: |
            until test -e {folder}/go-$WORKRON_ATTEMPT; do sleep 0.02; done
            echo "$WORKRON_INDEX $WORKRON_ATTEMPT" >> {folder}/ledger
        - name: after
          dependsOn: [{{name: work}}]
          command: echo after 1 >> {folder}/ledger
    """


def _ledger(folder: pathlib.Path) -> collections.Counter[str]:
    lines = (folder / "ledger").read_text().splitlines()
    return collections.Counter(line.split()[0] for line in lines)


def test_jobs_of_a_killed_run_end_once_in_another(
    call: Call, start: Start, database: str, tmp_path: pathlib.Path
) -> None:
    flow = tmp_path / "many.yaml"
    flow.write_text(textwrap.dedent(_FLOW.format(jobs=_JOBS, folder=tmp_path)))
    assert call("migrate", "--store", database).returncode == 0
    run = ("run", flow, "--store", database, "--slots", 8)
    killed, other = start(*run), start(*run)
    _await_running(call, database, 16)
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    for attempt in (1, 2):
        (tmp_path / f"go-{attempt}").touch()
    # The other has no part in the killed one's commands; the same command again ends them first.
    again = call(*run)
    said, _ = other.communicate(timeout=120)
    assert (again.returncode, other.returncode) == (0, 0), again.stdout + again.stderr + said
    assert call("wait", "many", "--store", database).returncode == 0
    ledger = _ledger(tmp_path)
    assert set(ledger) == {*map(str, range(_JOBS)), "after"}
    assert ledger["after"] == 1


def _await_running(call: Call, database: str, count: int) -> None:
    running = 0
    for _ in range(200):
        running = call("get", "many", "--store", database).stdout.count("Running")
        if running >= count:
            return
    raise AssertionError(f"only {running} of {count} jobs ran at once")
