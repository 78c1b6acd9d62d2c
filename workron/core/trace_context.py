"""The trace that a job belongs to, in the form of W3C Trace Context.

A command finds it in the environment variable TRACEPARENT, whatever tracing library it uses.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping


TRACEPARENT: Final = "TRACEPARENT"
_PATTERN: Final = re.compile(r"(?!ff)[0-9a-f]{2}-(?P<id>[0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}")
_INVALID_ID: Final = "0" * 32


def trace_id(parent: str | None) -> str | None:
    """Return the trace id of a TRACEPARENT; None if it is not a valid one."""
    found = _PATTERN.fullmatch(parent or "")
    return found["id"] if found and found["id"] != _INVALID_ID else None


def traceparent_of(spec: Mapping[str, Any]) -> str | None:
    """Return the TRACEPARENT in a spec's environment as written; the spec may be invalid."""
    env = spec.get("env")
    variables = [one for one in env if isinstance(one, dict)] if isinstance(env, list) else []
    values = [str(one.get("value")) for one in variables if one.get("name") == TRACEPARENT]
    return values[-1] if values else None


def with_traceparent(spec: Mapping[str, Any], parent: str | None) -> Mapping[str, Any]:
    """Return a spec with this TRACEPARENT, if there is one and the spec does not set another."""
    if parent is None or traceparent_of(spec) is not None:
        return spec
    return {**spec, "env": [*spec.get("env", ()), {"name": TRACEPARENT, "value": parent}]}
