"""Renders the page about the custom resources: what a cluster knows of them beyond their fields.

Called by `generate`. Names, columns and rules are those of the definitions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from workron_controller.crds import rules
from workron_controller.crds.kinds import KINDS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from workron_controller.crds.kinds import CustomResourceKind


_PAGE: Final = """\
# Custom resources

<!-- Made by `make generate` from docs/custom_resources.py and workron_controller/crds/. -->

`crds/` has a definition for each of the three kinds, made from the same models that read a
[manifest](manifest.md) without a cluster. They need Kubernetes 1.33 or newer, and are installed by
`kubectl apply --server-side -f crds`. All are in the group `workron.dev`, version `v1alpha1`, in a
namespace, and in the category `workron`: `kubectl get workron`. `kubectl explain wj.spec` says what
each field is for, and its default.

{names}

## What `kubectl get` shows

{columns}

Counts are those of the last status; before the first one the fields are empty.

## Selecting

{selectors}

## Before the first look

An object that the controller has not seen yet has a status all the same: phase `Waiting` (a pool
has no phase) and the condition `Reconciling`. So `helm install --wait`, and every tool that waits
for conditions, does not take it for ready. The condition has no `lastTransitionTime`, since the API
server did not see it begin.

## Conditions

A Job or a Workflow has these, each with a reason. A condition that does not hold is left
out, except `Accepted`.

| it | `Accepted` | and `True` are |
|---|---|---|
| is refused | False, why | `Stalled` |
| waits, is queued or runs | True | `Reconciling` |
| is suspended | True | `Reconciling`, `Suspended` |
| has succeeded | True | `Complete` |
| was skipped as `NotNeeded` | True | `Complete`, by that reason: there was nothing to do |
| has failed, was cancelled, or skipped for another reason | True | `Failed`, `Stalled` |

So `kubectl wait --for=condition=Complete` ends when nothing is left to do and nothing is wrong; the
phase still distinguishes Succeeded from Skipped. The conditions of a pool are in
[Worker pools](worker-pools.md).

## Editing

These fields of a Job and a Workflow can be edited, `cancel` and `forceCancel` only to true. A Job
has no `forceCancel`, and a cancelled object cannot be suspended.

{editable}

To change anything else make a new object. A field that had its default may be written out, and the
other way round; the same time may be written in another zone. The spec of a WorkerPool may be
edited as you like.

`kubectl scale wpool/NAME --replicas=N` sets `spec.replicas`. While a pool has none, how many
workers there are follows from the queue, and the `scale` subresource cannot be read: set it once
before a HorizontalPodAutoscaler takes over. This takes it out again:

```sh
kubectl patch wpool/NAME --type=merge -p '{{"spec": {{"replicas": null}}}}'
```

## Defaults

Defaults are written into the stored object, so that it does not change its meaning with a newer
version; it still says the same, and is the same submission. Tasks of a Workflow are left as they
are: ten thousand of them with every default would be more than a cluster stores as one object.

## Rejected objects

The API server refuses, when an object is made or edited, every field that has the wrong type or is
out of its bounds, and every field that does not exist (`kubectl` asks for that; of a client that
does not, such a field is dropped); two variables, volumes, mounts or upstreams with one key; and:

{refused}

Rules have a budget that counts the greatest object there could be, and see neither the length of a
text in bytes nor the inside of `items`. So the rest is left to the models. They refuse it in
`workron validate` and `workron run`; in a cluster the object is made, and it is for the controller
to say `Accepted=False` and why:

- names of tasks that are given twice, upstreams that are unknown, named twice or the task itself,
  cycles, and arrays of unequal length under `each`;
- a Job that depends on itself;
- a Workflow of more than 200,000 jobs or 2,000,000 edges;
- in a task: both `count` and `items`, an item that is null, a variable in `WORKRON_`, a blank
  program in `argv`, an exit code both in `retryOn` and in `failOn`;
- texts that are too long in bytes though not in characters, have a NUL character, or are blank by
  characters other than space, tab and line end;
- durations that are longer than ten years or finer than a millisecond, and times in a zone that
  there is not.

`tests/corpus/` has a manifest for each of these, and `python -m tests.corpus.judge KUBECONFIG` asks
a real API server about all of them.

## Sizes

A Workflow of more than about 2,000 tasks is too long for the annotation that `kubectl apply` keeps;
`kubectl apply --server-side` and `kubectl create` take it up to 10,000. Each write to one of that
size, its status included, costs the API server a second or more of its processor; an array of as
many jobs is one task to it.
"""


def page() -> str:
    """Render it."""
    return _PAGE.format(
        names=_table(("kind", "plural", "short", "subresources"), _names()),
        columns=_table(("kind", "columns", "more with `-o wide`"), _columns()),
        selectors=_table(("kind", "`--field-selector`"), _selectors()),
        editable="\n".join(f"- `{field}`" for field in rules.EDITABLE),
        refused="\n".join(_refused()),
    )


def _names() -> Iterator[tuple[str, ...]]:
    for kind in KINDS:
        subresources = ", ".join(f"`{one}`" for one in ("status", *kind.subresources))
        yield kind.name, f"`{kind.plural}`", f"`{kind.short}`", subresources


def _columns() -> Iterator[tuple[str, ...]]:
    for kind in KINDS:
        yield kind.name, _headings(kind, is_wide=False), _headings(kind, is_wide=True)


def _headings(kind: CustomResourceKind, *, is_wide: bool) -> str:
    return ", ".join(one.name for one in kind.columns if one.is_wide is is_wide)


def _selectors() -> Iterator[tuple[str, ...]]:
    for kind in KINDS:
        if kind.selectable_fields:
            yield kind.name, ", ".join(f"`{path[1:]}`" for path in kind.selectable_fields)


def _refused() -> Iterator[str]:
    for record, found in rules.RULES.items():
        for rule in found:
            place = f"{record}.{rule.field}" if rule.field else record
            yield f"- `{place}`: {rule.message}"


def _table(head: tuple[str, ...], rows: Iterator[tuple[str, ...]]) -> str:
    lines = (f"| {' | '.join(row)} |" for row in rows)
    return "\n".join([f"| {' | '.join(head)} |", "|---" * len(head) + "|", *lines])
