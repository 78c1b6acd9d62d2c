"""Reads manifest files, or standard input, into manifests and submit requests."""

from __future__ import annotations

import dataclasses
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from workron.cli import command_specs, gc_tuning, system_clock
from workron.cli.profiles import ProfileNamespace
from workron.core import errors, formats, trace_context
from workron.core.manifest import load
from workron.scheduling import submit

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from workron.cli.caller_environment import CallerEnvironment
    from workron.core.manifest.load import Manifest
    from workron.core.model.job import CommandSpec
    from workron.scheduling.submit import Request


_STDIN: Final = "-"
_MAX_BYTES: Final = 64 * 1024 * 1024


def request(
    paths: Sequence[str],
    namespace: str | None = None,
    *,
    is_local: bool = False,
    caller: CallerEnvironment | None = None,
) -> Request:
    """Read and plan the files; TRACEPARENT of this process becomes the parent of their traces.

    If they run on this machine, a relative workdir is resolved from the folder of its file. With
    `caller`, they run in this process, and it must have each variable that they take.
    """
    with gc_tuning.paused_collection():
        found = manifests(paths, namespace)
        if is_local:
            found = resolve_workdirs(found)
        if caller is not None:
            found = caller.add_to(found)
            caller.require_values(found)
        planned = submit.plan(found, system_clock.RNG, has_caller=is_local)
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


def resolve_workdirs(found: Iterable[Manifest]) -> list[Manifest]:
    """Return the manifests with absolute workdirs; a relative one begins in the file's folder."""
    return [command_specs.replaced(one, _resolved) for one in found]


def _resolved(spec: CommandSpec, manifest: Manifest) -> CommandSpec:
    if spec.workdir is None or spec.workdir.startswith("/"):
        return spec
    if spec.workdir.split("/")[0].startswith("~"):
        raise errors.InputError(
            f"{manifest.place('spec')}: the workdir {spec.workdir!r} begins with ~, which only a"
            " shell expands; write the full path, or one that is relative to the file"
        )
    workdir = str(_folder_of(manifest) / spec.workdir)
    if problem := formats.PATH.problem(workdir):
        raise errors.InputError(f"{manifest.place('spec')}: the folder {workdir!r} {problem}")
    return spec.model_copy(update={"workdir": workdir})


def _folder_of(manifest: Manifest) -> Path:
    """Return the folder of a file, or the current one for standard input and pipes."""
    file = Path(manifest.source)
    try:
        return file.absolute().parent if file.is_file() else Path.cwd()
    except FileNotFoundError:
        raise errors.InputError(
            "the current folder does not exist any more; change to another one"
        ) from None


def _in_namespace(found: Iterable[Manifest], namespace: str) -> Iterable[Manifest]:
    for one in found:
        metadata = one.resource.metadata
        if "namespace" not in metadata.model_fields_set:
            moved = metadata.model_copy(update={"namespace": namespace})
            resource = one.resource.model_copy(update={"metadata": moved})
            yield dataclasses.replace(one, resource=resource)
        elif metadata.namespace == namespace or isinstance(namespace, ProfileNamespace):
            yield one
        else:
            raise errors.InputError(
                f"{one.place('metadata', 'namespace')}: the namespace is"
                f" {metadata.namespace!r}, but --namespace is {namespace!r}; remove one of them"
            )
