"""Reads manifest files, or standard input, into manifests and submit requests."""

from __future__ import annotations

import dataclasses
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from workron.cli import gc_tuning, system_clock
from workron.core import errors, trace_context
from workron.core.manifest import load
from workron.scheduling import submit

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from workron.core.manifest.load import Manifest
    from workron.scheduling.submit import Request


_STDIN: Final = "-"
_MAX_BYTES: Final = 64 * 1024 * 1024


def request(paths: Sequence[str], namespace: str | None = None) -> Request:
    """Read and plan the files; TRACEPARENT of this process becomes the parent of their traces."""
    with gc_tuning.paused_collection():
        planned = submit.plan(manifests(paths, namespace), system_clock.RNG)
        return planned.within(os.environ.get(trace_context.TRACEPARENT))


def manifests(paths: Sequence[str], namespace: str | None = None) -> list[Manifest]:
    """Read the files; manifests without a namespace get the given one."""
    if paths.count(_STDIN) > 1:
        raise errors.InputError("standard input can be read only once: give - once")
    if _STDIN in paths and sys.stdin is None:  # a closed descriptor
        raise errors.InputError("standard input is closed; give a manifest file instead of -")
    found = load.load([_load(path) for path in paths])
    return found if namespace is None else list(_in_namespace(found, namespace))


def _load(path: str) -> load.ManifestSource:
    name = "standard input" if path == _STDIN else path
    try:
        if path == _STDIN:
            data = sys.stdin.buffer.read(_MAX_BYTES + 1)
        else:
            with Path(path).open("rb") as file:
                data = file.read(_MAX_BYTES + 1)
    except OSError as error:
        raise errors.InputError(f"{path}: {error.strerror}; give a manifest file") from None
    except ValueError as error:
        raise errors.InputError(f"{path!r} is not a valid path: {error}") from None
    if len(data) > _MAX_BYTES:
        raise errors.InputError(f"{name} is larger than {_MAX_BYTES:,} bytes; split the file")
    return load.ManifestSource(name, data)


def _in_namespace(found: Iterable[Manifest], namespace: str) -> Iterable[Manifest]:
    for one in found:
        metadata = one.resource.metadata
        if "namespace" not in metadata.model_fields_set:
            moved = metadata.model_copy(update={"namespace": namespace})
            resource = one.resource.model_copy(update={"metadata": moved})
            yield dataclasses.replace(one, resource=resource)
        elif metadata.namespace == namespace:
            yield one
        else:
            raise errors.InputError(
                f"{one.place('metadata', 'namespace')}: the namespace is"
                f" {metadata.namespace!r}, but --namespace is {namespace!r}; remove one of them"
            )
