"""Variables that `workron run` passes from its caller to commands, and that no store keeps.

A spec says by `fromEnv` which variable it takes; that is all that is stored. `--env-file` adds such
an entry to each Job and Workflow for each line of the file. The values stay in this process, which
gives them to the commands of its own runs. Another worker has none, and fails the attempt instead.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from workron.cli import command_specs
from workron.core import errors, formats
from workron.core.jobspec import MAX_ENV_VARS
from workron.core.model.job import EnvVar
from workron.core.model.workerpool import WorkerPool

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from workron.core.manifest.load import Manifest
    from workron.core.model.job import JobSpec
    from workron.core.model.workflow import WorkflowSpec
    from workron.scheduling.submit import Request
    from workron.store.types import ClaimedJob


_COMMENT: Final = "#"
_NONE: Final[Mapping[str, str]] = {}


@dataclass(frozen=True)
class CallerEnvironment:
    """The variables of the caller; values are never shown in a representation."""

    values: Mapping[str, str] = field(repr=False)
    """The variables that `fromEnv` can name."""
    added: Sequence[str] = ()
    """Those that every command gets."""

    @classmethod
    def read(cls, files: Iterable[Path], environ: Mapping[str, str]) -> CallerEnvironment:
        """Read the files of --env-file; a later one wins, and each wins over `environ`."""
        values: dict[str, str] = {}
        named: dict[str, str] = {}
        for file in files:
            for place, name, value in _lines(file):
                named[name] = place
                if value is not None:
                    values[name] = value
                else:
                    values.pop(name, None)
        known = {**environ, **values}
        for name, place in named.items():
            if name not in known:
                raise errors.InputError(
                    f"{place}: {name} has no value here and is not set in the environment;"
                    f" write {name}=VALUE, or set it"
                )
        return cls(known, tuple(named))

    def add_to(self, manifests: Iterable[Manifest]) -> list[Manifest]:
        """Return the manifests with the added variables; those of a manifest win."""
        if not self.added:
            return list(manifests)
        return [self._with_added(one) for one in manifests]

    def _with_added(self, manifest: Manifest) -> Manifest:
        resource = manifest.resource
        if isinstance(resource, WorkerPool):
            return manifest
        changed = resource.model_copy(update={"spec": self._extended(resource.spec)})
        return dataclasses.replace(manifest, resource=changed)

    def _extended(self, spec: JobSpec | WorkflowSpec) -> JobSpec | WorkflowSpec:
        own = {variable.name for variable in spec.env}
        more = [EnvVar(name=one, from_env=one) for one in self.added if one not in own]
        if len(own) + len(more) > MAX_ENV_VARS:
            raise errors.InputError(f"--env-file: a command has more than {MAX_ENV_VARS} variables")
        return spec.model_copy(update={"env": (*spec.env, *more)}) if more else spec

    def require_values(self, manifests: Iterable[Manifest]) -> None:
        """Raise ManifestError for each `fromEnv` without a value that a command can get."""
        found = [
            f"{one.place(*path, at)}: {problem}"
            for one in manifests
            for path, env in command_specs.environments(one)
            for at, problem in self._problems(env)
        ]
        if found:
            raise errors.ManifestError(found)

    def _problems(self, env: Sequence[EnvVar]) -> Iterator[tuple[int, str]]:
        for at, variable in enumerate(env):
            name = variable.from_env
            if name is None:
                continue
            if name not in self.values:
                yield (
                    at,
                    (
                        f"the variable {name} (env[].fromEnv) is not set in the environment of this"
                        f" command; set it, or give a file that has it: --env-file FILE"
                    ),
                )
            elif problem := formats.ENV_VALUE.problem(self.values[name]):
                yield at, f"the value of the variable {name} in the environment {problem}"

    def of_runs(self, request: Request) -> RunVariables:
        """Return the variables for the jobs of a request."""
        runs = frozenset((one.identity.namespace, one.identity.name) for one in request.plans)
        return RunVariables(self.values, runs)


@dataclass(frozen=True)
class RunVariables:
    """The variables for the jobs of some runs, each given by namespace and name."""

    values: Mapping[str, str] = field(repr=False)
    runs: frozenset[tuple[str, str]]

    def __call__(self, job: ClaimedJob) -> Mapping[str, str]:
        """Return the variables; none for a job of another caller's run."""
        return self.values if (job.namespace, job.run) in self.runs else _NONE


def _lines(file: Path) -> Iterator[tuple[str, str, str | None]]:
    """Return place, name and value of each line; without `=` the caller has the value."""
    try:
        text = file.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise errors.InputError(f"--env-file: {file}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise errors.InputError(f"--env-file: {file} is not UTF-8; save it as UTF-8") from None
    for number, line in enumerate(text.split("\n"), 1):
        stripped = line.strip()
        if stripped and not stripped.startswith(_COMMENT):
            place = f"{file}:{number}"
            yield place, *_entry(place, line.lstrip().rstrip("\r"))


def _entry(place: str, line: str) -> tuple[str, str | None]:
    name, equals, value = line.partition("=")
    if not equals:
        name = name.rstrip()
    advice = "write NAME=VALUE"
    if name.startswith("export "):
        raise errors.InputError(f"{place}: `export` is not allowed here; {advice}")
    if problem := formats.ENV_NAME.problem(name):
        # Only the name is quoted: without `=` the line may be a secret.
        shown = problem if equals else "this line is neither NAME=VALUE nor a NAME"
        raise errors.InputError(f"{place}: {shown}; {advice}")
    if problem := formats.ENV_VALUE.problem(value):
        raise errors.InputError(f"{place}: the value of {name} {problem}")
    return name, value if equals else None
