"""Checks CRDs in a cluster as a user sees them: names, columns, selectors, scale and status.

`judge` passes a function that runs kubectl in a namespace of its own.
"""

import json
from collections.abc import Callable, Iterator
from subprocess import CompletedProcess
from typing import Final

from tests.corpus import checker
from workron_controller.crds.kinds import KINDS

Ask = Callable[..., "CompletedProcess[str]"]

_OBJECTS: Final = """
apiVersion: workron.dev/v1alpha1
kind: Job
metadata: {name: seen}
spec: {command: x, pool: fast}
status: {phase: Succeeded}
---
apiVersion: workron.dev/v1alpha1
kind: Job
metadata: {name: other}
spec: {command: x}
---
apiVersion: workron.dev/v1alpha1
kind: Workflow
metadata: {name: seen}
spec: {tasks: [{name: a, command: x}]}
---
apiVersion: workron.dev/v1alpha1
kind: WorkerPool
metadata: {name: seen}
"""


def disagreements(ask: Ask) -> Iterator[str]:
    """Yield each difference from the definitions."""
    made = ask("create", "-f", "-", given=_OBJECTS)
    if made.returncode:
        yield made.stderr
    yield from _of_names(ask)
    yield from _of_selectors(ask)
    yield from _of_scale(ask)
    yield from _of_status(ask)


def _of_names(ask: Ask) -> Iterator[str]:
    for kind in KINDS:
        head, *rows = ask("get", kind.short, "--output=wide").stdout.splitlines()
        columns = ["NAME", *(column.name.upper() for column in kind.columns)]
        # With -o wide, columns are in order and separated by two spaces or more.
        if [one.strip() for one in head.split("  ") if one.strip()] != columns:
            yield f"the columns of {kind.name} are {head}"
        if not any(row.startswith("seen ") for row in rows):
            yield f"{kind.short} does not show the object"
        explained = ask("explain", f"{kind.short}.spec", "--recursive").stdout
        if checker.SCHEMAS[kind.name]["properties"]["spec"]["description"] not in explained:
            yield f"kubectl does not explain {kind.name}: {explained}"
    if len(ask("get", "workron", "--output=name").stdout.split()) != len(KINDS) + 1:
        yield "the category does not show all kinds"


def _of_selectors(ask: Ask) -> Iterator[str]:
    for selector, names in {
        "spec.pool=fast,status.phase=Waiting": ["job.workron.dev/seen"],
        "spec.pool=default": ["job.workron.dev/other"],
        "status.phase=Succeeded": [],
    }.items():
        found = ask("get", "wj", f"--field-selector={selector}", "--output=name")
        if found.stdout.split() != names:
            yield f"{selector} selects {found.stdout or found.stderr}"


def _of_scale(ask: Ask) -> Iterator[str]:
    scaled = ask("scale", "wpool/seen", "--replicas=2")
    replicas = ask("get", "wpool/seen", "--output=jsonpath={.spec.replicas}").stdout
    if replicas != "2":
        yield f"scaled to {replicas}: {scaled.stderr}"


def _of_status(ask: Ask) -> Iterator[str]:
    for kind in KINDS:
        status = ask("get", f"{kind.short}/seen", "--output=jsonpath={.status}").stdout
        if json.loads(status or "null") != kind.status:
            yield f"the initial status of a {kind.name} is {status}"
    patch = '{"status": {"phase": "Running", "reason": "Tried"}}'
    ask("patch", "wj/seen", "--subresource=status", "--type=merge", f"--patch={patch}")
    shown = ask("get", "wj/seen", "--no-headers").stdout
    if "Running" not in shown or "Tried" not in shown:
        yield f"a written status is shown as {shown}"
