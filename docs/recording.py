"""Record `workron run`, `kill -9` and the resumed run as an animated SVG.

`python docs/recording.py >docs/images/resume.svg` runs the commands for real, in an empty folder,
and draws what they print. A viewer without CSS animations shows the last frame.
"""

from __future__ import annotations

import html
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Final, NamedTuple

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
_COMMAND: Final = "workron run nightly.yaml --store sqlite:///jobs.db --slots 2"
_KILLED_AFTER_LINES: Final = 5
_WIDTH: Final = 760
_LINE_HEIGHT: Final = 22
_TOP: Final = 58
_STYLE: Final = """\
.line{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;fill:#d5dbe3;white-space:pre;
animation:show .01s linear both}
.command{fill:#ffffff;font-weight:bold}.ok{fill:#7fd39a}.resume{fill:#f2c879}.killed{fill:#f08d8d}
@keyframes show{from{opacity:0}to{opacity:1}}
@media (prefers-reduced-motion:reduce){.line{animation:none}}"""


class _Line(NamedTuple):
    at: float
    text: str


def main() -> None:
    """Print the SVG of a new recording."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "nightly.yaml").write_text(_MANIFEST)
        print(_svg(list(_record(folder))))


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


def _svg(lines: list[_Line]) -> str:
    height = _TOP + _LINE_HEIGHT * len(lines) + 14
    drawn = [_text(number, line) for number, line in enumerate(lines)]
    dots = "".join(
        f'<circle cx="{24 + 20 * place}" cy="22" r="6" fill="{color}"/>'
        for place, color in enumerate(("#f0716c", "#f2c879", "#7fd39a"))
    )
    title = "A killed workron run goes on where it stopped"
    size = f'viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" height="{height}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-label="{title}">',
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


def _class(text: str) -> str:
    if text.startswith("$"):
        return "command"
    if text.startswith("Killed"):
        return "killed"
    if text.startswith("Succeeded") or text.endswith("Succeeded"):
        return "ok"
    return "resume" if text.startswith("resuming") else ""


if __name__ == "__main__":
    main()
