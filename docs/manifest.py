"""Render the page about manifests: every field of the models, with its type, default and meaning.

The tables come from the JSON schemas of the models, the examples from `docs.manifest_examples`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from docs.manifest_examples import EXAMPLES, FIELD_EXAMPLES
from workron.core.model import meta
from workron.core.model.job import Job
from workron.core.model.meta import Resource
from workron.core.model.workerpool import WorkerPool
from workron.core.model.workflow import Workflow

_KINDS: Final[tuple[type[Resource], ...]] = (Job, Workflow, WorkerPool)
_TYPES: Final[Mapping[Any, str]] = {
    "object": "map of texts",
    "integer": "integer",
    "number": "number",
    "boolean": "`true` or `false`",
}
_PAGE: Final = """\
# Manifests

<!-- Made by `make generate` from the models in workron/core/model/; edit those. -->

A manifest is YAML or JSON with `apiVersion: workron.dev/v1alpha1` and one of three kinds. A file
may hold several. A field that is not listed here is rejected, and `workron validate` shows its
line. A *duration* is written like `90s`, `1h30m` or `500ms`, a *time* like `2026-01-31T12:00:00Z`.

{sections}
"""


def page() -> str:
    """Render the kinds first, then the records in the order in which they are mentioned."""
    schemas: dict[str, Any] = {}
    for kind in _KINDS:
        schema, records = meta.json_schema(kind)
        schemas |= records | {kind.__name__: schema}
    wanted = [kind.__name__ for kind in _KINDS]
    for name in wanted:
        mentioned = _mentions(schemas[name].get("properties", {}))
        wanted += [one for one in dict.fromkeys(mentioned) if one not in wanted]
    shown = [name for name in wanted if "properties" in schemas[name]]
    return _PAGE.format(sections="\n\n".join(_section(name, schemas) for name in shown))


def _mentions(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        if "$ref" in value:
            yield _name(value)
        for one in value.values():
            yield from _mentions(one)
    elif isinstance(value, list):
        for one in value:
            yield from _mentions(one)


def _name(schema: Mapping[str, Any]) -> str:
    return str(schema["$ref"]).rpartition("/")[2]


def _section(name: str, schemas: Mapping[str, Any]) -> str:
    schema = schemas[name]
    required = schema.get("required", ())
    rows = [
        f"| `{field}` | {_type(one, schemas)} | {_default(one, is_required=field in required)} |"
        f" {one.get('description', '')} |"
        for field, one in schema["properties"].items()
    ]
    about = schema.get("description", "").partition("\n")[0]
    table = ["| field | type | default | meaning |", "|---|---|---|---|", *rows]
    example = [*_yaml(EXAMPLES[name]), ""] if name in EXAMPLES else []
    examples = []
    for text, _, spec in (one.partition("\n\n") for one in FIELD_EXAMPLES.get(name, ())):
        examples += ["", text, "", *_yaml(spec)]
    return "\n".join([f"## {name}", "", about, "", *example, *table, *examples])


def _yaml(text: str) -> list[str]:
    return ["```yaml", text.rstrip(), "```"]


def _type(schema: Mapping[str, Any], schemas: Mapping[str, Any]) -> str:
    if "$ref" in schema:
        name = _name(schema)
        if "enum" in schemas[name]:
            return _words(schemas[name]["enum"])
        return f"[{name}](#{name.lower()})"
    if "anyOf" in schema:
        some = [_type(one, schemas) for one in schema["anyOf"] if one.get("type") != "null"]
        return " or ".join(dict.fromkeys(some))
    if "const" in schema or "enum" in schema:
        return _words(schema.get("enum") or [schema["const"]])
    return _plain_type(schema, schemas)


def _plain_type(schema: Mapping[str, Any], schemas: Mapping[str, Any]) -> str:
    type_ = schema.get("type")
    if type_ == "array":
        return f"list of {_type(schema['items'], schemas)}"
    if type_ == "string":
        return _text(schema)
    return _TYPES.get(type_, "anything") + _bounds(schema)


def _text(schema: Mapping[str, Any]) -> str:
    if schema.get("format") == "date-time":
        return "time"
    # Only the pattern of a duration ends in milliseconds.
    return "duration" if schema.get("pattern", "").endswith("ms)?$") else "text"


def _words(words: list[str]) -> str:
    return " or ".join(f"`{word}`" for word in words)


def _bounds(schema: Mapping[str, Any]) -> str:
    least, most = schema.get("minimum"), schema.get("maximum")
    if least is None:
        return ""
    return f", {least:,} or more" if most is None else f", {least:,} to {most:,}"


def _default(schema: Mapping[str, Any], *, is_required: bool) -> str:
    # `kind` and `apiVersion` have a default in Python only; a manifest must name them.
    if is_required or "const" in schema:
        return "required"
    default = schema.get("default")
    if default in (None, [], {}, ""):
        return "none"
    if isinstance(default, dict):
        return "the defaults of its fields"
    return f"`{default if isinstance(default, str) else json.dumps(default)}`"
