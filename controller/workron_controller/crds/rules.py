"""What the API server checks beyond the form of single fields: which may change, which go together.

Rules are in CEL, and the cluster refuses a definition whose rules might cost too much on the
greatest object that the bounds allow. What ten thousand tasks make too dear, and what CEL cannot
see, only the models check; `tests/corpus/unaccepted` has it all. Called by `structural` and
`definition`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple

EDITABLE: Final = ("suspend", "cancel", "priority", "ttlSecondsAfterFinished")
"""Of a Job and of a Workflow. What a pool is like may be edited altogether."""


class Rule(NamedTuple):
    """One rule, about the record that it stands in or about one field of it."""

    expression: str
    message: str
    field: str | None = None
    reason: str = "FieldValueInvalid"

    def as_manifest(self) -> dict[str, str]:
        """Give it in the shape of a definition."""
        place = {"fieldPath": f".{self.field}"} if self.field else {}
        return {"rule": self.expression, "message": self.message, "reason": self.reason} | place


def _exactly_one_of(*fields: str) -> Rule:
    count = " + ".join(f"(has(self.{field}) ? 1 : 0)" for field in fields)
    return Rule(f"{count} == 1", f"set exactly one of {', '.join(fields)}")


def _some_time(field: str, hint: str = "") -> Rule:
    return Rule(
        f"!has(self.{field}) || self.{field}.matches('[1-9]')",
        f"{field} must be greater than zero{hint}",
        field,
    )


def _final(field: str) -> Rule:
    return Rule(
        f"!has(oldSelf.{field}) || !oldSelf.{field} || (has(self.{field}) && self.{field})",
        f"{field} cannot be taken back: what it ended is over; make a new object",
        field,
        "FieldValueForbidden",
    )


_NO_LIMIT: Final = "; to have no limit leave the field out"
_ONE_COMMAND: Final = Rule(
    "has(self.command) != has(self.argv)", "set exactly one of command and argv"
)
_OWN_VARIABLES: Final = Rule(
    "!has(self.env) || self.env.all(one, !one.name.startsWith('WORKRON_'))",
    "names in WORKRON_ are reserved: Workron sets them for each attempt",
    "env",
)
RULES: Final[Mapping[str, tuple[Rule, ...]]] = MappingProxyType(
    {
        "JobSpec": (
            _ONE_COMMAND,
            Rule(
                r"!has(self.argv) || self.argv[0].matches('\\S')",
                "argv[0], the program, is blank",
                "argv",
            ),
            Rule(
                "!has(self.retryOn) || !has(self.failOn)"
                " || self.retryOn.all(code, !(code in self.failOn))",
                "an exit code is in retryOn and in failOn; keep it in one",
                "failOn",
            ),
            _OWN_VARIABLES,
            _some_time("timeout", _NO_LIMIT),
            _some_time("deadline", _NO_LIMIT),
            _final("cancel"),
        ),
        "Task": (_ONE_COMMAND, _some_time("timeout", _NO_LIMIT), _some_time("deadline", _NO_LIMIT)),
        "WorkflowSpec": (_final("cancel"),),
        "WorkerPoolSpec": (
            Rule(
                "self.minReplicas <= self.maxReplicas", "is greater than maxReplicas", "minReplicas"
            ),
            Rule(
                "duration(self.lease) >= duration(self.heartbeat) + duration(self.heartbeat)",
                "must be at least twice the heartbeat",
                "lease",
            ),
            _some_time("lease"),
            Rule(
                "duration(self.heartbeat) >= duration('100ms')",
                "must be at least 100ms",
                "heartbeat",
            ),
            _OWN_VARIABLES,
            Rule(
                "!has(self.volumeMounts) || self.volumeMounts.all(mount,"
                " has(self.volumes) && self.volumes.exists(one, one.name == mount.name))",
                "has an entry that is not in volumes",
                "volumeMounts",
            ),
            Rule(
                "!has(self.labels) || self.labels.all(key, !key.startsWith('workron.dev/'))",
                "workron.dev/ labels are reserved: they are set by the controller",
                "labels",
            ),
        ),
        "EnvSource": (_exactly_one_of("secretKeyRef", "configMapKeyRef"),),
        "PoolEnvVar": (_exactly_one_of("value", "valueFrom"),),
        "EnvFrom": (
            _exactly_one_of("secretRef", "configMapRef"),
            Rule(
                "!has(self.prefix) || !self.prefix.startsWith('WORKRON_')",
                "names in WORKRON_ are reserved: Workron sets them for each attempt",
                "prefix",
            ),
        ),
        "Volume": (_exactly_one_of("secret", "configMap", "emptyDir", "persistentVolumeClaim"),),
        "VolumeMount": (
            Rule(
                "self.mountPath.startsWith('/') && !self.mountPath.contains(':')",
                "must begin with '/' and must not contain ':'",
                "mountPath",
            ),
        ),
        "Toleration": (
            Rule(
                "self.operator != 'Exists' || !has(self.value)",
                "operator Exists does not take a value; remove it",
                "value",
            ),
            Rule(
                "self.operator != 'Equal' || has(self.key)",
                "set a key, or operator: Exists for every key",
            ),
        ),
    }
)

_KEYS: Final[Mapping[str, list[str]]] = MappingProxyType(
    {
        "EnvVar": ["name"],
        "PoolEnvVar": ["name"],
        "Volume": ["name"],
        "VolumeMount": ["mountPath"],
        "Dependency": ["kind", "name"],
        "StatusCondition": ["type"],
    }
)
"""What no two records of one list may have the same of."""


def of_record(name: str) -> dict[str, Any]:
    """Give the rules of a record, by its model's name."""
    return as_schema(RULES.get(name, ()))


def of_list(item: str | None) -> dict[str, Any]:
    """Say whether a list of such records is merged by keys, or is one value."""
    if item is not None and item in _KEYS:
        return {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": _KEYS[item]}
    return {"x-kubernetes-list-type": "atomic"}


def of_keys(pattern: str) -> dict[str, Any]:
    """Check the keys of a map, which a cluster's schema has no other way to."""
    # In a text of CEL a backslash stands twice.
    escaped = pattern.replace("\\", "\\\\")
    message = "a key has up to 63 letters, digits, '-', '_' or '.', after an optional 'prefix/'"
    return as_schema([Rule(f"self.all(key, key.matches('{escaped}'))", message)])


def frozen(kind: str, fields: Iterable[str]) -> list[Rule]:
    """Forbid that a field is changed, added or taken away."""
    # A rule at the field itself would not be asked when the field comes or goes.
    editable = ", ".join(EDITABLE)
    return [
        Rule(
            f"has(self.{field}) == has(oldSelf.{field})"
            f" && (!has(self.{field}) || self.{field} == oldSelf.{field})",
            f"{field} cannot be changed: of a {kind} only {editable} can be; make a new {kind}",
            field,
            "FieldValueForbidden",
        )
        for field in fields
        if field not in EDITABLE
    ]


def as_schema(rules: Iterable[Rule]) -> dict[str, Any]:
    """Give the part of a schema that rules are in."""
    found = [rule.as_manifest() for rule in rules]
    return {"x-kubernetes-validations": found} if found else {}
