"""Load manifests from the bytes of files, or raise one error with every problem."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import pydantic

from workron.core import errors
from workron.core.manifest import advice, yaml_reader
from workron.core.manifest.problems import Document, Path, Step, describe_value, explain
from workron.core.model.job import Job
from workron.core.model.meta import API_VERSION
from workron.core.model.workerpool import WorkerPool
from workron.core.model.workflow import Workflow

MAX_PROBLEMS: Final = 20
"""Problems that are listed for one file; the rest are counted."""

KINDS: Final[Mapping[str, type[Job | Workflow | WorkerPool]]] = {
    "Job": Job,
    "Workflow": Workflow,
    "WorkerPool": WorkerPool,
}
_SCRIPT: Final = b"#!"
_HEAD: Final = "a manifest begins with apiVersion, kind, metadata and spec"
_LISTS: Final = frozenset({"v1 List"} | {f"{API_VERSION} {kind}List" for kind in KINDS})


@dataclass(frozen=True, slots=True)
class ManifestSource:
    """The name of a file, for messages, and its content."""

    name: str
    data: bytes


@dataclass(frozen=True, slots=True)
class Manifest:
    """One object, and its place in a file."""

    resource: Job | Workflow | WorkerPool
    source: str
    document: Document = field(repr=False, compare=False)
    at: Path = ()
    """Path to the object in its document; empty unless it is in a List."""

    def place(self, *path: Step) -> str:
        """Return file and line of a field of the object, for a message."""
        return f"{self.source}:{self.document.line_of((*self.at, *path))}"


def load(sources: Iterable[ManifestSource]) -> list[Manifest]:
    """Read all objects of all files, in order; ManifestError with every problem."""
    manifests: list[Manifest] = []
    problems: list[str] = []
    for source in sources:
        good, wrong = _read_source(source)
        manifests += good
        problems += wrong
    problems += _named_twice(manifests)
    if problems:
        raise errors.ManifestError(problems)
    return manifests


def _read_source(source: ManifestSource) -> tuple[list[Manifest], list[str]]:
    if source.data.startswith(_SCRIPT):
        return [], [
            f"{source.name}:1: is a script, not a manifest; name it in the command of a Job"
        ]
    good: list[Manifest] = []
    lines: list[str] = []
    more = 0
    for document in yaml_reader.read_documents(source.data):
        for at, value in _objects(document):
            resource = _check(document, at, value)
            if resource is not None:
                good.append(Manifest(resource, source.name, document, at))
        lines += [problem.format(source.name) for problem in document.problems]
        more += document.unexplained
    if not good and not lines:
        lines.append(f"{source.name}: has no object; add a {' or '.join(KINDS)}")
    if more := more + max(0, len(lines) - MAX_PROBLEMS):
        lines[MAX_PROBLEMS:] = [f"{source.name}: and {more:,} more problems like these"]
    return good, lines


def _objects(document: Document) -> Iterator[tuple[Path, Any]]:
    """Return the objects of a document, each with its path; an empty document has none."""
    value = document.value
    is_list = isinstance(value, dict) and f"{value.get('apiVersion')} {value.get('kind')}" in _LISTS
    if not is_list:
        if value is not None:
            yield (), value
        return
    items = value.get("items")
    if not isinstance(items, list):
        document.report(("items",), f"must be a list, found {describe_value(items)}")
        return
    for index, item in enumerate(items):
        yield ("items", index), item


def _check(document: Document, at: Path, value: Any) -> Job | Workflow | WorkerPool | None:
    problems = list(_head_problems(value))
    for path, message in problems:
        document.report(at + path, message)
    if problems:
        return None
    model = KINDS[value["kind"]]
    try:
        return model.parse(value)
    except pydantic.ValidationError as error:
        explained, more = explain(error, model)
    for path, message in explained:
        document.report(at + path, message)
    document.unexplained += more
    return None


def _head_problems(value: Any) -> Iterator[tuple[Path, str]]:
    """Check version and kind, which decide what the other fields must be."""
    if not isinstance(value, dict):
        tip = "separate objects by lines with ---" if isinstance(value, list) else _HEAD
        yield (), f"an object is a mapping, found {describe_value(value)}; {tip}"
        return
    version, kind = value.get("apiVersion"), value.get("kind")
    if version is None:
        yield ("apiVersion",), f"is required; write apiVersion: {API_VERSION}"
    elif version != API_VERSION:
        yield ("apiVersion",), f"must be {API_VERSION}, found {describe_value(version)}"
    if not isinstance(kind, str) or kind not in KINDS:
        meant = advice.near_word(kind, KINDS)
        yield ("kind",), f"must be one of {', '.join(KINDS)}, found {describe_value(kind)}{meant}"


def _named_twice(manifests: Iterable[Manifest]) -> Iterator[str]:
    first: dict[tuple[str, ...], Manifest] = {}
    for manifest in manifests:
        meta, kind = manifest.resource.metadata, manifest.resource.kind
        if meta.name is None:
            continue
        other = first.setdefault((kind, meta.namespace, meta.name), manifest)
        if other is not manifest:
            yield (
                f"{manifest.place('metadata', 'name')}: metadata.name: {kind} '{meta.name}' of "
                f"namespace '{meta.namespace}' is already in {other.place('metadata', 'name')}; "
                "give each its own name"
            )
