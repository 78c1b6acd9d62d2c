"""The execution log outside the store: every command logs that it began, runs and ended.

A line is one write at the end of the file, so lines of many processes never mix. The time is that
of /proc/uptime, CLOCK_BOOTTIME to a hundredth of a second; the folder of
the command shows its worker.
"""

import pathlib
import re
from dataclasses import dataclass

# Only shell builtins, without further processes: a storm runs thousands of commands.
_NOTE = """\
note() {{
  read -r up _ </proc/uptime
  echo "$WORKRON_JOB_ID $WORKRON_ATTEMPT $WORKRON_FENCE $1 $up $$ $HOME" >>{path}
}}
live() {{ while ! test -e "$1"; do note alive; sleep 0.05; done; }}
note begin
{body}
note end
"""
_WORKER = re.compile(r"/([^/]+)/workron-[0-9a-f]{32}/")


@dataclass(slots=True)
class Execution:
    """One execution of a command, as it logged itself."""

    job: int
    attempt: int
    fence: int
    worker: str
    pid: int
    began: float
    last: float
    """The time of its last line."""
    has_ended: bool = False
    begins: int = 1
    """How often this attempt began; more than once means that a claim was executed twice."""


def command(path: pathlib.Path, body: str) -> str:
    """Wrap a shell command so that it writes the execution log at `path`.

    It may call `live FILE`, which logs `alive` repeatedly until that file exists.
    """
    return _NOTE.format(path=path, body=body)


def read(path: pathlib.Path) -> list[Execution]:
    """Return the executions that are logged so far."""
    found: dict[tuple[int, int, int], Execution] = {}
    for line in path.read_text().splitlines():
        job, attempt, fence, word, up, pid, home = line.split(" ", 6)
        key = int(job), int(attempt), int(fence)
        if word == "begin" and key in found:
            found[key].begins += 1
        elif word == "begin":
            found[key] = Execution(*key, _worker(home), int(pid), float(up), float(up))
        one = found[key]
        one.last = max(one.last, float(up))
        one.has_ended |= word == "end"
    return list(found.values())


def _worker(home: str) -> str:
    found = _WORKER.search(f"{home}/")
    return found[1] if found else home
