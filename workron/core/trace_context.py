"""The trace that a job belongs to, as the W3C's Trace Context writes it down.

A command finds it in TRACEPARENT, whatever tracer it uses; here only its form is known.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping


TRACEPARENT: Final = "TRACEPARENT"
_PARENT: Final = re.compile(r"(?!ff)[0-9a-f]{2}-(?P<id>[0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}")
_NONE: Final = "0" * 32


def trace_id(parent: str | None) -> str | None:
    """Give the id of the trace that is written so; None if it is the form of none."""
    found = _PARENT.fullmatch(parent or "")
    return found["id"] if found and found["id"] != _NONE else None


def traceparent_of(spec: Mapping[str, Any]) -> str | None:
    """Give what the environment of a job says, as it is; the spec may be anybody's."""
    given = spec.get("env")
    env = [one for one in given if isinstance(one, dict)] if isinstance(given, list) else []
    values = [str(one.get("value")) for one in env if one.get("name") == TRACEPARENT]
    return values[-1] if values else None


def with_traceparent(spec: Mapping[str, Any], parent: str) -> Mapping[str, Any]:
    """Give a spec whose environment says so, unless it says something itself."""
    if traceparent_of(spec) is not None:
        return spec
    return {**spec, "env": [*spec.get("env", ()), {"name": TRACEPARENT, "value": parent}]}
