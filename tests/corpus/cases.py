"""The corpus: manifests, each with the verdict on which CRDs and models must agree.

Both accept the manifests in `good` and reject those in `refused`. The first line of a refused one
names what rejects it: the schema and the place, a rule and its message, or a check that the API
server makes for every object. The cluster accepts the manifests in `unaccepted` and the models
reject them with the message in the first line; the controller then reports `Accepted=False`.
"""

import pathlib
import uuid
from dataclasses import dataclass
from typing import Final

from workron.core import errors, planner
from workron.core.manifest import load
from workron.core.model.job import Job
from workron.core.model.workerpool import WorkerPool
from workron.core.model.workflow import Workflow

FOLDER: Final = pathlib.Path(__file__).parent
_UID: Final = uuid.UUID(int=0)


@dataclass(frozen=True)
class Case:
    """One manifest; `means` is what must reject it, `place` where, and `words` why.

    Means are `schema`, with a place; `rule`, with a place and words; `server`, for a check of every
    object; or `models`.
    """

    verdict: str
    name: str
    text: str
    means: str = ""
    place: str = ""
    words: str = ""


def of(verdict: str) -> list[Case]:
    """Return the manifests of one verdict."""
    return [_case(file) for file in sorted((FOLDER / verdict).glob("*.yaml"))]


def _case(file: pathlib.Path) -> Case:
    text = file.read_text(encoding="utf-8")
    head = text.partition("\n")[0]
    means, _, rest = head.removeprefix("# ").partition(": ") if head[0] == "#" else ("", "", "")
    place, _, words = rest.partition(": ") if means in {"schema", "rule"} else ("", "", rest)
    return Case(file.parent.name, file.stem, text, means, place, words)


def refusal(text: str) -> str | None:
    """Return why this manifest is rejected on submission; None if it is accepted."""
    try:
        for manifest in load.load([load.ManifestSource("f", text.encode())]):
            match manifest.resource:
                case Job() as job:
                    planner.plan_job(job, _UID)
                case Workflow() as workflow:
                    planner.plan_workflow(workflow, _UID)
                case WorkerPool():
                    pass
    except errors.WorkronError as error:
        return str(error)
    return None
