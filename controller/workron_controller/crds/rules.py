"""Validation rules in CEL: which fields may change, and which exclude or need each other.

The API server refuses a definition whose rules could cost too much on the largest object that the
bounds allow. So rules that ten thousand tasks make too expensive, and rules that CEL cannot
express, are checked by the models alone; `tests/corpus/unaccepted` has an example of each.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

EDITABLE: Final = ("suspend", "cancel", "forceCancel", "priority", "ttlSecondsAfterFinished")
"""Fields of Jobs and Workflows that may change. Every field of a WorkerPool may."""


class ValidationRule(NamedTuple):
    """A rule about a record, or about one field of it."""

    expression: str
    message: str
    field: str | None = None
    reason: str = "FieldValueInvalid"

    def as_manifest(self) -> dict[str, str]:
        """Return it as a part of the definition."""
        place = {"fieldPath": f".{self.field}"} if self.field else {}
        return {"rule": self.expression, "message": self.message, "reason": self.reason} | place


def _exactly_one_of(*fields: str) -> ValidationRule:
    count = " + ".join(f"(has(self.{field}) ? 1 : 0)" for field in fields)
    return ValidationRule(f"{count} == 1", f"set exactly one of {', '.join(fields)}")


def _positive_duration(field: str, hint: str = "") -> ValidationRule:
    return ValidationRule(
        f"!has(self.{field}) || self.{field}.matches('[1-9]')",
        f"{field} must be greater than zero{hint}",
        field,
    )


def _irrevocable(field: str) -> ValidationRule:
    return ValidationRule(
        f"!has(oldSelf.{field}) || !oldSelf.{field} || (has(self.{field}) && self.{field})",
        f"{field} cannot be undone; create a new object",
        field,
        "FieldValueForbidden",
    )


_NO_LIMIT: Final = "; to have no limit leave the field out"
_ONE_COMMAND: Final = ValidationRule(
    "has(self.command) != has(self.argv)", "set exactly one of command and argv"
)
_OWN_VARIABLES: Final = ValidationRule(
    "!has(self.env) || self.env.all(one, !one.name.startsWith('WORKRON_'))",
    "names in WORKRON_ are reserved: Workron sets them for each attempt",
    "env",
)
_NO_CALLER: Final = ValidationRule(
    "!has(self.env) || self.env.all(one, !has(one.fromEnv))",
    "fromEnv works only in `workron run`; write a value, or set the variable in env of the pool",
    "env",
)
RULES: Final[Mapping[str, tuple[ValidationRule, ...]]] = {
    "JobSpec": (
        _ONE_COMMAND,
        ValidationRule(
            r"!has(self.argv) || self.argv[0].matches('\\S')",
            "argv[0], the program, is blank",
            "argv",
        ),
        ValidationRule(
            "!has(self.retryOn) || !has(self.failOn)"
            " || self.retryOn.all(code, !(code in self.failOn))",
            "an exit code is in retryOn and in failOn; keep it in one",
            "failOn",
        ),
        _OWN_VARIABLES,
        _NO_CALLER,
        _positive_duration("timeout", _NO_LIMIT),
        _positive_duration("deadline", _NO_LIMIT),
        _irrevocable("cancel"),
    ),
    "Task": (
        _ONE_COMMAND,
        _positive_duration("timeout", _NO_LIMIT),
        _positive_duration("deadline", _NO_LIMIT),
    ),
    "WorkflowSpec": (
        _OWN_VARIABLES,
        _NO_CALLER,
        _positive_duration("deadline", _NO_LIMIT),
        _irrevocable("cancel"),
        _irrevocable("forceCancel"),
    ),
    "TaskDefaults": (_positive_duration("timeout", _NO_LIMIT),),
    "WorkerPoolSpec": (
        ValidationRule(
            "self.minReplicas <= self.maxReplicas", "is greater than maxReplicas", "minReplicas"
        ),
        ValidationRule(
            "duration(self.lease) >= duration(self.heartbeat) + duration(self.heartbeat)",
            "must be at least twice the heartbeat",
            "lease",
        ),
        _positive_duration("lease"),
        ValidationRule(
            "duration(self.heartbeat) >= duration('100ms')",
            "must be at least 100ms",
            "heartbeat",
        ),
        _OWN_VARIABLES,
        ValidationRule(
            "!has(self.volumeMounts) || self.volumeMounts.all(mount,"
            " has(self.volumes) && self.volumes.exists(one, one.name == mount.name))",
            "has an entry that is not in volumes",
            "volumeMounts",
        ),
        ValidationRule(
            "!has(self.labels) || self.labels.all(key, !key.startsWith('workron.dev/'))",
            "workron.dev/ labels are reserved: they are set by the controller",
            "labels",
        ),
    ),
    "EnvSource": (_exactly_one_of("secretKeyRef", "configMapKeyRef"),),
    "PoolEnvVar": (_exactly_one_of("value", "valueFrom"),),
    "EnvFrom": (
        _exactly_one_of("secretRef", "configMapRef"),
        ValidationRule(
            "!has(self.prefix) || !self.prefix.startsWith('WORKRON_')",
            "names in WORKRON_ are reserved: Workron sets them for each attempt",
            "prefix",
        ),
    ),
    "Volume": (_exactly_one_of("secret", "configMap", "emptyDir", "persistentVolumeClaim"),),
    "VolumeMount": (
        ValidationRule(
            "self.mountPath.startsWith('/') && !self.mountPath.contains(':')",
            "must begin with '/' and must not contain ':'",
            "mountPath",
        ),
    ),
    "Toleration": (
        ValidationRule(
            "self.operator != 'Exists' || !has(self.value)",
            "operator Exists does not take a value; remove it",
            "value",
        ),
        ValidationRule(
            "self.operator != 'Equal' || has(self.key)",
            "set a key, or operator: Exists for every key",
        ),
    ),
}

_KEYS: Final[Mapping[str, list[str]]] = {
    "EnvVar": ["name"],
    "PoolEnvVar": ["name"],
    "Volume": ["name"],
    "VolumeMount": ["mountPath"],
    "Dependency": ["kind", "name"],
    "StatusCondition": ["type"],
}
"""The fields that identify a record in a list."""


def of_record(name: str) -> dict[str, Any]:
    """Return the rules of a record by the name of its model."""
    return as_schema(RULES.get(name, ()))


def of_list(item: str | None) -> dict[str, Any]:
    """Return whether a list of such records is merged by keys or replaced as a whole."""
    if item is not None and item in _KEYS:
        return {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": _KEYS[item]}
    return {"x-kubernetes-list-type": "atomic"}


def of_keys(pattern: str) -> dict[str, Any]:
    """Return the rule for the keys of a map, which a schema of the cluster cannot check itself."""
    # A string in CEL needs a double backslash.
    escaped = pattern.replace("\\", "\\\\")
    message = "a key has up to 63 letters, digits, '-', '_' or '.', after an optional 'prefix/'"
    return as_schema([ValidationRule(f"self.all(key, key.matches('{escaped}'))", message)])


def immutable(kind: str, fields: Iterable[str]) -> list[ValidationRule]:
    """Return the rules that forbid to change, add or remove fields."""
    # A rule at the field itself is not evaluated when the field is added or removed.
    names = tuple(fields)
    editable = ", ".join(name for name in EDITABLE if name in names)
    return [
        ValidationRule(
            f"has(self.{field}) == has(oldSelf.{field})"
            f" && (!has(self.{field}) || self.{field} == oldSelf.{field})",
            f"{field} cannot be changed: only {editable} of a {kind} can; create a new {kind}",
            field,
            "FieldValueForbidden",
        )
        for field in names
        if field not in EDITABLE
    ]


def as_schema(rules: Iterable[ValidationRule]) -> dict[str, Any]:
    """Return the part of a schema that has the rules."""
    found = [rule.as_manifest() for rule in rules]
    return {"x-kubernetes-validations": found} if found else {}
