"""What must not be done to a command whose remains have been taken away."""

import os
import pathlib
import select
import uuid

from workron_runner import messages
from workron_runner.attempt import Attempt, Because
from workron_runner.crowd import Crowd
from workron_runner.scratch import Place


def test_kill_after_the_end_neither_signals_nor_changes_what_is_told(
    tmp_path: pathlib.Path,
) -> None:
    order = messages.Run(
        claim=uuid.uuid4().hex, argv=["true"], environment={}, inputs="{}", output_bytes=0,
        window=0, workdir=None, timeout=None, grace=0, outlives_deadline=False,
    )  # fmt: skip
    reader, writer = os.pipe()
    os.close(writer)
    pid = os.posix_spawnp("true", ["true"], os.environ, setsid=True)
    attempt = Attempt(order, Place(tmp_path, tmp_path, tmp_path), pid, 1, reader)
    crowd = Crowd()
    crowd.enter(attempt, None)
    select.select([attempt.exit], [], [])
    assert crowd.exited(attempt)
    crowd.kill(attempt, 0)
    assert not attempt.is_told
    assert attempt.because is Because.ITSELF
    assert attempt.ended(None).exit_code == 0
    attempt.close()
