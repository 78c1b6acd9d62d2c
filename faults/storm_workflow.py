"""The workflows of the storm: arrays, edges of every kind, retries, and some long jobs."""

from typing import Any

_TERMS = {
    "maxAttempts": 100,
    "maxWorkerLosses": 100,
    "backoff": {"initial": "50ms", "max": "500ms"},
}
# From half a second to longer than a lease, so that executions of a frozen job may overlap.
_LONG = """
    left=$((5 << WORKRON_INDEX))
    while test $left -gt 0; do sleep 0.1; note alive; left=$((left - 1)); done
    """


def wave() -> dict[str, Any]:
    """Return the tasks of one workflow, which all succeed in the end despite faults."""
    tasks: dict[str, dict[str, Any]] = {
        "first": {"command": ":", "count": 100},
        "second": {
            "command": "sleep 0.0$((WORKRON_INDEX % 10))",
            "count": 100,
            "dependsOn": [{"name": "first", "each": True}],
        },
        "retried": {"command": "test $WORKRON_ATTEMPT -gt 1 || exit 3", "count": 20},
        "long": {"command": _LONG, "count": 5},
        "after": {
            "command": ":",
            "count": 10,
            "dependsOn": [{"name": "second"}, {"name": "retried"}, {"name": "long"}],
        },
        "once": {"command": ":", "dependsOn": [{"name": "after", "when": "Finished"}]},
    }
    return {name: task | _TERMS for name, task in tasks.items()}
