"""Record `workron run` as SVG pictures: the commands run for real, in an empty folder.

- `python docs/recording.py resume >docs/images/resume.svg`: a run, `kill -9` and the resumed run,
  animated. A viewer without CSS animations shows the last frame.
- `python docs/recording.py failure >docs/images/failure.svg`: a run on a terminal in which a job
  fails; the table in the middle of the run, and the summary.
"""

from __future__ import annotations

import contextlib
import fcntl
import html
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Final, NamedTuple

from rich.console import Console
from rich.style import Style
from rich.text import Text

_MANIFEST: Final = """\
apiVersion: workron.dev/v1alpha1
kind: Workflow
metadata: {name: nightly}
spec:
  tasks:
    - name: extract
      command: sleep 0.3
    - name: convert
      items: [mon, tue, wed, thu, fri, sat]
      dependsOn: [{name: extract}]
      command: sleep 1
    - name: report
      dependsOn: [{name: convert}]
      command: echo "six days"
"""
_FAILING: Final = """\
apiVersion: workron.dev/v1alpha1
kind: Workflow
metadata: {name: etl}
spec:
  tasks:
    - name: extract
      command: sleep 0.5
    - name: convert
      count: 8
      maxAttempts: 1
      dependsOn: [{name: extract}]
      command: sleep 0.7; [ $WORKRON_INDEX != 1 ] || { echo "row 17 has no date"; exit 3; }
    - name: load
      dependsOn: [{name: convert}]
      command: sleep 0.3
    - name: cleanup
      dependsOn: [{name: load, when: Finished}]
      command: sleep 0.4
"""
_FAILING_COMMAND: Final = "workron run etl.yaml --store sqlite:///jobs.db --slots 2"
_COLUMNS: Final = 84
_COLORS: Final = {1: "red", 2: "green", 3: "yellow", 6: "cyan"}
"""The colors of a terminal that are drawn, by number."""
_COMMAND: Final = "workron run nightly.yaml --store sqlite:///jobs.db --slots 2"
_KILLED_AFTER_LINES: Final = 5
_WIDTH: Final = 760
_LINE_HEIGHT: Final = 22
_TOP: Final = 58
_STYLE: Final = """\
.line{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;fill:#d5dbe3;white-space:pre;
animation:show .01s linear both}
.command{fill:#ffffff;font-weight:bold}.ok{fill:#7fd39a}.resume{fill:#f2c879}.killed{fill:#f08d8d}
.still .line{animation:none}.cyan{fill:#6fc3df}.red{fill:#f08d8d}.green{fill:#7fd39a}
.yellow{fill:#f2c879}.dim{opacity:.6}.bold{font-weight:bold}
@keyframes show{from{opacity:0}to{opacity:1}}
@media (prefers-reduced-motion:reduce){.line{animation:none}}"""


class _Line(NamedTuple):
    at: float
    text: str


def main(picture: str) -> None:
    """Print the SVG of a new recording."""
    with tempfile.TemporaryDirectory() as folder:
        if picture == "failure":
            Path(folder, "etl.yaml").write_text(_FAILING)
            print(_failure(folder))
        else:
            Path(folder, "nightly.yaml").write_text(_MANIFEST)
            title = "A killed workron run goes on where it stopped"
            print(_svg(title, [_text(*one) for one in enumerate(_record(folder))]))


def _failure(folder: str) -> str:
    """Draw what is on the terminal when a job has failed, and what remains at the end."""
    frames = re.split(r"(?:\r|\x1b\[1A|\x1b\[2K)+", _on_terminal(folder))
    at = next(at for at, frame in enumerate(frames) if "Failed   " in frame)
    # Below the failure the table is drawn as it was before.
    lines_above = frames[at].splitlines()[:2]
    text = "\n".join(
        [f"$ {_FAILING_COMMAND}", *lines_above, frames[at + 2], "", frames[-1].strip()]
    )
    lines = [Text.from_ansi(line) for line in text.splitlines()]
    title = "workron run prints a failure above the table, and a time line at the end"
    return _svg(title, [_styled_line(*one) for one in enumerate(lines)], still=True)


def _on_terminal(folder: str) -> str:
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, _COLUMNS, 0, 0))
    process = subprocess.Popen(  # noqa: S603
        [sys.executable, "-m", *_FAILING_COMMAND.split()],
        cwd=folder, stdin=theirs, stdout=theirs, stderr=theirs, env=os.environ | {"TERM": "xterm"},
    )  # fmt: skip
    os.close(theirs)
    written = b""
    # Linux reports a terminal that no process has open as a broken device.
    with contextlib.suppress(OSError):
        while piece := os.read(ours, 65536):
            written += piece
    os.close(ours)
    process.wait()
    return written.decode().replace("\r\n", "\n")


def _record(folder: str) -> Iterator[_Line]:
    yield _Line(0.5, f"$ {_COMMAND}")
    at = 1.5
    with _started(folder) as process:
        for line in _timed(_output(process), at, _KILLED_AFTER_LINES):
            at = line.at
            yield line
        process.send_signal(signal.SIGKILL)
    yield _Line(at + 0.4, "Killed        # kill -9 from another terminal")
    yield _Line(at + 2.0, f"$ {_COMMAND}")
    with _started(folder) as process:
        yield from _timed(_output(process), at + 3.0, None)


def _started(folder: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", *_COMMAND.split()]
    return subprocess.Popen(  # noqa: S603
        command,
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=os.environ | {"PYTHONUNBUFFERED": "1"},
    )


def _output(process: subprocess.Popen[str]) -> IO[str]:
    if process.stdout is None:
        raise RuntimeError("the output of workron is not captured")
    return process.stdout


def _timed(lines: IO[str], begin: float, count: int | None) -> Iterator[_Line]:
    started = time.monotonic()
    for number, line in enumerate(lines, 1):
        yield _Line(begin + time.monotonic() - started, line.rstrip())
        if number == count:
            return


def _svg(title: str, drawn: list[str], *, still: bool = False) -> str:
    height = _TOP + _LINE_HEIGHT * len(drawn) + 14
    dots = "".join(
        f'<circle cx="{24 + 20 * place}" cy="22" r="6" fill="{color}"/>'
        for place, color in enumerate(("#f0716c", "#f2c879", "#7fd39a"))
    )
    size = f'viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" height="{height}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-label="{title}"'
        + (' class="still">' if still else ">"),
        f"<style>{_STYLE}</style>",
        f'<rect width="{_WIDTH}" height="{height}" rx="8" fill="#1b2129"/>{dots}',
        *drawn,
        "</svg>",
    ]
    return "\n".join(parts)


def _text(number: int, line: _Line) -> str:
    y = _TOP + _LINE_HEIGHT * number
    return (
        f'<text class="line {_class(line.text)}" xml:space="preserve" x="18" y="{y}"'
        f' style="animation-delay:{line.at:.2f}s">{html.escape(line.text)}</text>'
    )


def _styled_line(number: int, line: Text) -> str:
    y = _TOP + _LINE_HEIGHT * number
    spans = "".join(
        f'<tspan class="{_classes(segment.style)}">{html.escape(segment.text)}</tspan>'
        for segment in line.render(Console())
    )
    return f'<text class="line" xml:space="preserve" x="18" y="{y}">{spans}</text>'


def _classes(style: Style | None) -> str:
    if style is None:
        return ""
    color = _COLORS.get(style.color.number or 0, "") if style.color else ""
    return " ".join([color, *["bold"] * bool(style.bold), *["dim"] * bool(style.dim)])


def _class(text: str) -> str:
    if text.startswith("$"):
        return "command"
    if text.startswith("Killed"):
        return "killed"
    if text.startswith("Succeeded") or text.endswith("Succeeded"):
        return "ok"
    return "resume" if text.startswith("resuming") else ""


if __name__ == "__main__":
    main(*sys.argv[1:])
