"""The digest of what a root is to do, by which a repeated submission is told from another one.

Made by `core.expand`. It is worked out when it is asked for, since that takes a good part of what
planning takes; and a few tasks at a time, since a store has to be served between.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, Final

from workron.core import json_text
from workron.core.model.workflow import WorkflowSpec

if TYPE_CHECKING:
    from collections.abc import Iterator

    from workron.core.model.job import JobSpec
    from workron.core.plan import Kind

_EDITABLE: Final = {"suspend", "cancel", "priority", "ttl_seconds_after_finished"}
_NO_TASKS: Final = b'"tasks":[]'


class SpecDigest:
    """That of a Job or a Workflow; known for good when it was worked out once."""

    def __init__(self, kind: Kind, spec: JobSpec | WorkflowSpec) -> None:
        self._kind = kind
        self._spec = spec
        self._known = ""

    def __call__(self) -> str:
        """Give it."""
        for _ in self.steps():
            pass
        return self._known

    def steps(self) -> Iterator[None]:
        """Work it out, with a pause after each step; whoever asks then has it at once."""
        if self._known:
            return
        digest = hashlib.sha256()
        for piece in self._pieces():
            digest.update(piece)
            yield
        self._known = digest.hexdigest()

    def _pieces(self) -> Iterator[bytes]:
        """Give the content, each text of it in its place: of a workflow a few tasks at a time."""
        spec = self._spec
        if not isinstance(spec, WorkflowSpec):
            yield self._worded(spec)
            return
        before, _, after = self._worded(spec.model_copy(update={"tasks": ()})).partition(_NO_TASKS)
        yield before + b'"tasks":['
        comma = b""
        for some in spec.slices():
            yield comma + b",".join(map(json_text.canonical, _content(some)["tasks"]))
            comma = b","
        yield b"]" + after

    def _worded(self, spec: JobSpec | WorkflowSpec) -> bytes:
        return json_text.canonical({"kind": self._kind, "spec": _content(spec)})


def _content(spec: JobSpec | WorkflowSpec) -> dict[str, Any]:
    # Defaults are left out, so that writing one down does not make it other content; all that is
    # not set is one, and need not even be compared.
    return spec.model_dump(
        mode="json", by_alias=True, exclude_unset=True, exclude_defaults=True, exclude=_EDITABLE
    )
