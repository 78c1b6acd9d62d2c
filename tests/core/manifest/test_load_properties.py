"""Any bytes give a manifest or an error, and any job is read as it was written."""

import json
from typing import Any

import hypothesis
import yaml
from hypothesis import strategies

from workron.core import errors
from workron.core.manifest import load, yaml_scalars
from workron.core.model.job import Job

_ASCII = "abcdefghijklmnopqrstuvwxyz0123456789"
_NAMES = strategies.text(_ASCII, min_size=1, max_size=20)
_TEXTS = strategies.text(
    strategies.characters(exclude_categories=["Cc", "Cs", "Cn"]), max_size=30
) | strategies.sampled_from(
    [*yaml_scalars.WORDS, "1e3", "0o17", "12:30", "a: b", "<<", "- a", "#", "\n"]
)
_COMMANDS = _TEXTS.filter(lambda text: bool(text.strip()))
_DURATIONS = strategies.integers(1, 10_000).map("{}ms".format)
_ENV = strategies.lists(
    strategies.fixed_dictionaries({"name": _NAMES.map("V_{}".format), "value": _TEXTS}),
    max_size=3,
    unique_by=lambda variable: variable["name"],
)
_SPECS = strategies.fixed_dictionaries(
    {},
    optional={
        "env": _ENV,
        "pool": _NAMES,
        "priority": strategies.integers(-1000, 1000),
        "timeout": _DURATIONS,
        "backoff": strategies.fixed_dictionaries({"max": _DURATIONS}),
        "failOn": strategies.lists(strategies.integers(1, 255), max_size=3),
        "suspend": strategies.booleans(),
        "startAfter": strategies.datetimes().map(lambda when: f"{when.isoformat()[:19]}Z"),
    },
)
_PROGRAMS = strategies.one_of(
    strategies.fixed_dictionaries({"command": _COMMANDS}),
    strategies.fixed_dictionaries({"argv": strategies.tuples(_COMMANDS, _TEXTS).map(list)}),
)
_JOBS = strategies.builds(
    lambda name, program, rest: Job.parse({"metadata": {"name": name}, "spec": program | rest}),
    _NAMES,
    _PROGRAMS,
    _SPECS,
)

_VOCABULARY = """
apiVersion kind metadata spec tasks name command argv env items dependsOn timeout Job
Workflow WorkerPool List v1 workron.dev/v1alpha1 &a *a <<: ? - : , [ ] { } ' " | > # --- ... ! !!str
~ y 1e3 .inf 0x 5s \\ud83d \\0 %YAML null"""
_TOKENS = strategies.sampled_from(
    [*_VOCABULARY.split(), "\n", "\n  ", "\n- ", " ", ": ", "\t", "\x85", "é"]
)
_SOUP = strategies.lists(_TOKENS, max_size=40).map("".join)
_HEADS = strategies.sampled_from(["", "apiVersion: workron.dev/v1alpha1\nkind: Job\n"])
_TREES: strategies.SearchStrategy[Any] = strategies.recursive(
    strategies.none() | strategies.booleans() | strategies.integers() | strategies.text(),
    lambda inner: strategies.lists(inner) | strategies.dictionaries(_TOKENS, inner),
    max_leaves=15,
)


class _Quoting(yaml.SafeDumper):
    """Writes every text in quotes; PyYAML omits them for words that other readers convert."""


_Quoting.add_representer(
    str, lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", text, style='"')
)


def _check_answer(data: bytes) -> None:
    try:
        manifests: list[load.Manifest] = load.load([load.ManifestSource("f", data)])
        problems: tuple[str, ...] = ()
    except errors.ManifestError as refused:
        manifests, problems = [], refused.problems
    assert bool(manifests) != bool(problems)
    assert all(problem.startswith("f:") for problem in problems)


@hypothesis.given(strategies.binary(max_size=100))
def test_any_bytes_give_a_manifest_or_an_error(data: bytes) -> None:
    _check_answer(data)


@hypothesis.given(_HEADS, _SOUP)
def test_any_text_gives_a_manifest_or_an_error(head: str, soup: str) -> None:
    _check_answer((head + soup).encode())


@hypothesis.given(
    strategies.sampled_from(["Job", "Workflow", "WorkerPool"]), _TREES, _TREES, _TREES
)
def test_any_values_give_a_manifest_or_an_error(
    kind: str, metadata: object, spec: object, task: object
) -> None:
    head = {"apiVersion": "workron.dev/v1alpha1", "kind": kind}
    for part in (spec, {"tasks": [task]}, task):
        _check_answer(json.dumps(head | {"metadata": metadata, "spec": part}).encode())


@hypothesis.given(_JOBS)
def test_job_is_read_as_the_same_when_it_was_written_as_yaml(job: Job) -> None:
    written = yaml.dump(job.as_manifest(), Dumper=_Quoting, allow_unicode=True)
    [manifest] = load.load([load.ManifestSource("f", written.encode())])
    assert manifest.resource == job


@hypothesis.given(_JOBS, strategies.booleans())
def test_job_is_read_as_the_same_when_it_was_written_as_json(
    job: Job,
    is_ascii: bool,
) -> None:
    written = json.dumps(job.as_manifest(), ensure_ascii=is_ascii)
    [manifest] = load.load([load.ManifestSource("f", written.encode())])
    assert manifest.resource == job
