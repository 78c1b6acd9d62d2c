"""An API server with many Jobs, as its own process: FOLDER COUNT.

It is the fake server of the controller's tests, and its cost does not count as the controller's. It
writes a kubeconfig into the folder, and prints its name when it accepts requests.
"""

from __future__ import annotations

import asyncio
import json
import pathlib
import sys
from typing import Any

from tests.controller.fake_api.fake import FakeApi
from tests.controller.fake_api.kinds import JOB


async def _main(folder: str, count: str) -> None:
    async with FakeApi() as api:
        for number in range(int(count)):
            api.add(JOB, f"report-{number}", **_content(number))
        print(api.kubeconfig(pathlib.Path(folder)), flush=True)
        await asyncio.get_running_loop().create_future()


def _content(number: int) -> dict[str, Any]:
    """Return a Job as `kubectl apply` leaves it."""
    spec = {
        "command": f"python -m reports.monthly --month {number % 12 + 1} --shard {number}",
        "env": [{"name": name, "value": f"value of {name}"} for name in ("REGION", "MODE", "OUT")],
        "timeout": "10m",
        "maxAttempts": 3,
    }
    applied = {"apiVersion": JOB.version, "kind": JOB.name, "spec": spec}
    fields: dict[str, Any] = {f"f:{name}": {} for name in spec}
    manager = {
        "manager": "kubectl-client-side-apply",
        "operation": "Update",
        "apiVersion": JOB.version,
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:metadata": {"f:annotations": {}, "f:labels": {}}, "f:spec": fields},
    }
    metadata = {
        "labels": {"app": "reports", "team": "numbers", "shard": str(number)},
        "annotations": {"kubectl.kubernetes.io/last-applied-configuration": json.dumps(applied)},
        "managedFields": [manager],
    }
    return {"metadata": metadata, "spec": spec}


if __name__ == "__main__":
    asyncio.run(_main(*sys.argv[1:]))
