"""Ask a real API server about the corpus: `python -m tests.corpus.judge KUBECONFIG`.

Prints each disagreement, and is 1 if there is any. The definitions must be in the cluster; what is
made there is in a namespace of its own, which is deleted afterwards.
"""

import contextlib
import json
import subprocess
import sys
import uuid
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from tests.corpus import cases, scalars, surface, updates
from workron.core.manifest import yaml_scalars

_SECONDS: Final = 120


class Cluster:
    """Runs kubectl in one namespace of a cluster."""

    def __init__(self, kubeconfig: str, name: str) -> None:
        self.name = name
        self._command = ["kubectl", "--kubeconfig", kubeconfig, "--namespace", name]

    def ask(self, *arguments: str, given: str = "") -> subprocess.CompletedProcess[str]:
        """Run kubectl."""
        return subprocess.run(
            [*self._command, *arguments],
            input=given,
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
        )

    def try_create(self, manifest: str, *options: str) -> subprocess.CompletedProcess[str]:
        """Create an object without storing it; `apply` would remove nulls first."""
        return self.ask("create", "--dry-run=server", "-f", "-", *options, given=manifest)


def disagreements(cluster: Cluster) -> Iterator[str]:
    """Yield each difference between the cluster and this program."""
    yield from surface.disagreements(cluster.ask)
    yield from about_corpus(cluster)
    yield from about_values(cluster)
    yield from about_scalars(cluster)
    yield from about_updates(cluster)


def about_corpus(cluster: Cluster) -> Iterator[str]:
    """Compare verdicts, with places and messages."""
    for verdict in ("good", "refused", "unaccepted"):
        for case in cases.of(verdict):
            answer = cluster.try_create(case.text)
            is_refused = answer.returncode != 0
            if is_refused != (verdict == "refused"):
                yield f"{verdict}/{case.name}: {_message(answer)}"
            elif is_refused and not (case.place in answer.stderr and case.words in answer.stderr):
                expected = f"{case.place} {case.words}"
                yield f"{verdict}/{case.name}: {expected} is not in: {_message(answer)}"


def about_values(cluster: Cluster) -> Iterator[str]:
    """Compare the values of scalars after they are stored."""
    read = {
        text: yaml_scalars.as_json(yaml_scalars.resolve_scalar(text)) for text in scalars.SCALARS
    }
    ours = {text: value for text, value in read.items() if value is not None}
    answer = cluster.try_create(scalars.workflow(list(ours)), "-o", "json")
    if answer.returncode:
        yield f"scalars: {_message(answer)}"
        return
    theirs = json.loads(answer.stdout)["spec"]["tasks"][0]["items"]
    for (text, value), other in zip(ours.items(), theirs, strict=True):
        if (type(value), value) != (type(other), other):
            yield f"scalar {text}: the cluster reads {other!r}, we read {value!r}"


def about_scalars(cluster: Cluster) -> Iterator[str]:
    """Compare which scalars are accepted in a field of each type."""
    texts = {
        f"{field}-{number}": scalars.job(field, scalar, f"{field}-{number}")
        for field in scalars.FIELDS
        for number, scalar in enumerate(scalars.SCALARS)
    }
    accepted = _written(cluster.try_create("---\n".join(texts.values())))
    for name, text in texts.items():
        if (refusal := cases.refusal(text)) and name in accepted:
            yield f"the cluster accepts what we reject, {refusal}: {text}"
        elif not refusal and name not in accepted:
            yield f"the cluster rejects what we accept: {text}"
    for scalar in scalars.OUT_OF_RANGE:
        if not cluster.try_create(scalars.job("integer", scalar)).returncode:
            yield f"the cluster accepts {scalar}"


def about_updates(cluster: Cluster) -> Iterator[str]:
    """Compare which edits of created objects are accepted."""
    edits = list(updates.updates())
    made = cluster.ask("create", "-f", "-", given=_list(edit.before for edit in edits))
    if made.returncode:
        yield f"updates: {_message(made)}"
    answer = cluster.ask("replace", "-f", "-", given=_list(edit.after for edit in edits))
    accepted, refusals = _written(answer), answer.stderr.split("Error from server")
    for edit in edits:
        message = next((one for one in refusals if f'"{edit.name}"' in one), "")
        if (edit.name in accepted) != (edit.refused is None):
            yield f"update {edit.name}: {message or 'is accepted'}"
        elif edit.refused and f"{edit.refused} cannot be" not in message:
            yield f"update {edit.name} is rejected with another message: {message}"


def _list(objects: Iterable[Any]) -> str:
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)})


def _written(answer: subprocess.CompletedProcess[str]) -> set[str]:
    """Return the names of the objects that kubectl has written."""
    return {line.split()[0].partition("/")[2] for line in answer.stdout.splitlines()}


def _message(answer: subprocess.CompletedProcess[str]) -> str:
    return (answer.stderr or answer.stdout).strip()


@contextlib.contextmanager
def namespace(kubeconfig: str) -> Iterator[Cluster]:
    """Create a namespace, and delete it at the end."""
    cluster = Cluster(kubeconfig, f"corpus-{uuid.uuid4().hex[:8]}")
    cluster.ask("create", "namespace", cluster.name)
    try:
        yield cluster
    finally:
        cluster.ask("delete", "namespace", cluster.name, "--wait=false")


def main(arguments: Sequence[str]) -> int:
    """Print the disagreements; return 1 if there are any."""
    (kubeconfig,) = arguments
    with namespace(kubeconfig) as cluster:
        found = list(disagreements(cluster))
    for one in found:
        print(one)  # noqa: T201
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
