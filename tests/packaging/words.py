"""The vocabulary rules of the repository, and a program that lists what breaks them.

`python -m tests.packaging.words [PATH...]` prints the number of offenders of each file, and with
`-v` each offender. The words to use are in docs/reference/glossary.md.
"""

from __future__ import annotations

import ast
import inspect
import io
import os
import pathlib
import re
import sys
import tokenize
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

ROOT: Final = pathlib.Path(__file__).parents[2]
_SUFFIXES: Final = {".py", ".sql", ".yaml", ".yml", ".tpl", ".txt", ".md", ".toml", ".json"}
_SKIPPED_FOLDERS: Final = {"__pycache__", "dist", "build", "node_modules"}
# Data that is not written by hand, and this list itself.
_SKIPPED_FILES: Final = {
    "tests/packaging/words.py",
    "tests/packaging/test_words.py",
    "uv.lock",
    "LICENSE",
}

# A banned word, and what to write instead. Each one is a whole word, also inside an identifier:
# `told` stands for `told`, `_told_jobs` and `ToldJob`.
BANNED_WORDS: Final[Mapping[str, str]] = {
    # old-fashioned
    "anew": "again",
    "whoever": "name the actor: the caller, the worker, the process",
    "whosoever": "name the actor",
    "whom": "name the actor",
    "nobody": "name the actor: no process, no worker, no user",
    "somebody": "name the actor: another process, a user",
    "aright": "correctly",
    "therein": "in it",
    "thereof": "of it",
    "hitherto": "until now",
    # personification
    "tell": "report, show, distinguish",
    "tells": "reports, shows, distinguishes",
    "told": "reported, sent, given",
    "telling": "status sync",
    "hear": "receive",
    "hears": "receives",
    "heard": "received",
    "hearing": "informer",
    "bury": "reap",
    "buries": "reaps",
    "buried": "reaped",
    "hire": "start a worker",
    "hires": "starts a worker",
    "hired": "started",
    "farewell": "drain, ttl",
    "goodbye": "deregister",
    "herald": "events",
    "heralds": "events",
    "keeper": "reconciler",
    "tended": "reconciled",
    "tending": "reconciler",
    "insist": "retry",
    "insists": "retries",
    "patience": "retry, timeout",
    "patient": "retry, timeout",
    "obey": "handle",
    "obeys": "handles",
    # furniture and household
    "door": "store interface",
    "doors": "store interfaces",
    "doorbell": "workqueue",
    "bell": "notify",
    "bells": "notify",
    "desk": "name the component",
    "seat": "lease",
    "seats": "leases",
    "lounge": "name the component",
    "broom": "workspace cleanup",
    "litter": "leftover files",
    "signboard": "docstring",
    "signboards": "docstrings",
    "yard": "name the folder",
    "inbox": "workqueue",
    "outbox": "workqueue",
    "carrier": "submitter",
    # other words for a concept that has one
    "beat": "heartbeat",
    "beats": "heartbeats",
    "pulse": "heartbeat",
    "bearing": "group condition",
    "edition": "generation",
    "editions": "generations",
    "vanish": "is lost",
    "vanishes": "is lost",
    "vanished": "lost",
    "crew": "workers",
    "crews": "workers",
    "crowd": "processes",
    "strays": "leftover processes",
    "leavings": "leftovers",
    "stumbles": "start failures",
    "surroundings": "dependencies",
    "roster": "list of workers",
    "storey": "layer",
}

# `a worker is no pod`, but neither `is no longer` nor `is no faster`.
_NO: Final = (
    r"\b(?:is|are|was|were) no "
    r"(?!(?:longer|more|such|other|different|faster|slower|older|newer|better|worse|one)\b)[a-z]+\b"
)
# Patterns for phrases and for grammar that slows a reader down.
BANNED_PHRASES: Final[Mapping[str, str]] = {
    r"\bin vain\b": "say what failed",
    r"\bby what came of\b": "by result",
    r"\bat times\b": "sometimes",
    r"\bgive back\b|\bgives back\b|\bgiven back\b|\bhanded? back\b|\bhands back\b": "release",
    r"\bas who\b|\bfor who\b|\bby who\b|\bof who\b|\bto who\b": "name the actor",
    r"\bput up with\b": "tolerate",
    _NO: "X is not a Y",
}  # fmt: skip

# How a sentence must not begin: a relative clause as the subject, or a noun that was left out.
_START: Final = r"(?:^|(?<=[.!?:;]\s)|(?<=[.!?:;]\s\s)|(?<=[-*]\s))"
BANNED_OPENINGS: Final[Mapping[str, str]] = {
    _START + r"Who [^?\n.|]*\.": "begin with the actor",
    _START + r"(?:What|Whatever|Which) [^?.|]*\.(?=\s|$)": "begin with the noun",
    _START + r"Of [a-z][^.|?]*, ": "begin with the subject",
    _START + r"(?:There is|There are|There was) ": "begin with the subject",
    _START + r"(?:None|Nothing) of (?:it|them|these) ": "begin with the subject",
}

# Names that say nothing about what a module is for.
BANNED_MODULES: Final = frozenset(
    ["utils", "util", "helpers", "helper", "common", "misc", "lib", "stuff", "things", "tools"]
)

_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_FENCE: Final = re.compile(r"^ *```.*?^ *```$", re.MULTILINE | re.DOTALL)
_PHRASES: Final = [(re.compile(one), why) for one, why in BANNED_PHRASES.items()]
_OPENINGS: Final = [(re.compile(one, re.MULTILINE), why) for one, why in BANNED_OPENINGS.items()]
# `tell` of a file object, the user that Linux calls nobody.
_FIELD_NAMES: Final = re.compile(r"\.tell\(|[\"'`]nobody[\"'`]|\bnobody(?=[:/]|\b.{0,12}65534)")


class Offender(NamedTuple):
    """One place that breaks a rule."""

    path: str
    line: int
    text: str
    instead: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.text!r}: {self.instead}"


class _Block(NamedTuple):
    line: int
    prose: str


def files() -> list[pathlib.Path]:
    """Return the text files of the repository, as relative paths."""
    found = []
    for folder, inner, names in os.walk(ROOT):
        inner[:] = [one for one in inner if not one.startswith(".") and one not in _SKIPPED_FOLDERS]
        found += [pathlib.Path(folder, name).relative_to(ROOT) for name in names]
    return sorted(
        one for one in found if one.suffix in _SUFFIXES and one.as_posix() not in _SKIPPED_FILES
    )


def offenders(path: pathlib.Path) -> list[Offender]:
    """Return all offenders in one file of the repository, its name included."""
    text = (ROOT / path).read_text()
    return [*_in_name(path), *check(text, path.as_posix())]


def check(text: str, path: str) -> list[Offender]:
    """Return the offenders in a text; the suffix of `path` decides how the text is read."""
    found = list(_banned_words(text, path))
    for block in _prose(text, path):
        found += _in_prose(block, path)
    return found


def _in_name(path: pathlib.Path) -> Iterator[Offender]:
    for word in _WORD.findall(path.as_posix()):
        if instead := BANNED_WORDS.get(word.lower()):
            yield Offender(path.as_posix(), 0, word, instead)
    if path.suffix == ".py" and path.stem in BANNED_MODULES:
        yield Offender(path.as_posix(), 0, path.name, "name the concept")


def _banned_words(text: str, path: str) -> Iterator[Offender]:
    for number, line in enumerate(text.splitlines(), 1):
        for word in _WORD.findall(_FIELD_NAMES.sub("", line)):
            if instead := BANNED_WORDS.get(word.lower()):
                yield Offender(path, number, word, instead)


def _in_prose(block: _Block, path: str) -> Iterator[Offender]:
    for pattern, instead in _PHRASES + _OPENINGS:
        for hit in pattern.finditer(block.prose):
            line = block.line + block.prose.count("\n", 0, hit.start())
            yield Offender(path, line, " ".join(hit.group().split())[:60], instead)


def _prose(text: str, path: str) -> list[_Block]:
    match pathlib.PurePath(path).suffix:
        case ".py":
            return _prose_of_python(text)
        case ".md":
            blank = _FENCE.sub(lambda hit: "\n" * hit.group().count("\n"), text)
            return _paragraphs(blank.splitlines(), re.compile(r"^(\s*(?:[-*>]|\d+\.) |\||#)"))
        case ".sql":
            return _comments(text, "--")
        case ".yaml" | ".yml" | ".toml" | ".tpl":
            return _comments(text, "#")
        case _:
            return []


def _prose_of_python(text: str) -> list[_Block]:
    comments = [
        (token.start[0], token.string.lstrip("#").strip())
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if token.type == tokenize.COMMENT
    ]
    strings = [
        _Block(node.lineno, _joined(inspect.cleandoc(node.value)))
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value
    ]
    return _joined_comments(comments) + strings


def _joined(text: str) -> str:
    # A sentence goes on in the next line, a paragraph does not.
    return re.sub(r"(?<=[^\n])\n[ \t]*(?=[^\n\s])", " ", text)


def _comments(text: str, sign: str) -> list[_Block]:
    pattern = re.compile(rf"(?:^|\s){re.escape(sign)}+ ?(.*)$")
    lines = [
        (number, hit[1].strip())
        for number, line in enumerate(text.splitlines(), 1)
        if (hit := pattern.search(line))
    ]
    return _joined_comments(lines)


def _joined_comments(lines: Sequence[tuple[int, str]]) -> list[_Block]:
    blocks: list[_Block] = []
    last = -1
    for number, line in lines:
        if number == last + 1 and blocks and line:
            blocks[-1] = _Block(blocks[-1].line, f"{blocks[-1].prose} {line}".strip())
        else:
            blocks.append(_Block(number, line))
        last = number
    return blocks


def _paragraphs(lines: Sequence[str], begins: re.Pattern[str]) -> list[_Block]:
    blocks: list[_Block] = []
    goes_on = False
    for number, line in enumerate(lines, 1):
        if not line.strip():
            goes_on = False
            continue
        if goes_on and not begins.match(line):
            blocks[-1] = _Block(blocks[-1].line, f"{blocks[-1].prose} {line.strip()}")
        else:
            blocks.append(_Block(number, re.sub(r"^\s*(?:[-*>]|\d+\.) +", "", line).strip("#| ")))
        goes_on = not line.startswith(("#", "|"))
    return blocks


def classes(folders: Sequence[str]) -> Mapping[str, list[str]]:
    """Return where each public class of the Python in these folders is defined."""
    found: dict[str, list[str]] = defaultdict(list)
    for path in files():
        if path.suffix != ".py" or not path.as_posix().startswith(tuple(folders)):
            continue
        for node in ast.parse((ROOT / path).read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found[node.name].append(path.as_posix())
    return found


def main(arguments: Sequence[str]) -> int:
    """Print the offenders below some paths; exit code 1 if there are any."""
    wanted = tuple(one for one in arguments if one != "-v") or ("",)
    found = [
        one
        for path in files()
        if path.as_posix().startswith(wanted)
        for one in offenders(path)
    ]  # fmt: skip
    if "-v" in arguments:
        for one in found:
            print(one)  # noqa: T201
    for name, count in Counter(one.path for one in found).most_common():
        print(f"{count:5} {name}")  # noqa: T201
    print(f"{len(found):5} in all")  # noqa: T201
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
