"""A fork bomb with a bounded number of processes.

Run by a job: `python fork_bomb.py COUNTER`. Each process takes a number before it forks, by a byte
that it appends to the file under a lock; a killed process is not replaced when all numbers are
taken. The first process ends when half of the numbers are taken.
"""

import fcntl
import os
import pathlib
import signal
import sys
import time

_MAX_PROCESSES = 200


def main(path: pathlib.Path) -> None:
    """Fork until the numbers are used up."""
    if _fork(path):
        while path.stat().st_size < _MAX_PROCESSES / 2:
            time.sleep(0.01)
        return
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    while True:
        # Each generation has a session of its own, so that no process group contains all.
        if not _fork(path):
            os.setsid()


def _fork(path: pathlib.Path) -> int:
    """Fork, if a number is left; the number of the child, 0 in the child itself."""
    with path.open("ab") as counter:
        fcntl.flock(counter, fcntl.LOCK_EX)
        is_allowed = os.fstat(counter.fileno()).st_size < _MAX_PROCESSES
        if is_allowed:
            os.write(counter.fileno(), b".")
    if not is_allowed:
        time.sleep(0.1)
        return 1
    try:
        return os.fork()
    except BlockingIOError:
        return 1


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
