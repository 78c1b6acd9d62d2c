"""The corpus: manifests, each with the verdict that definitions and models must agree on.

`good` is taken by both. `refused` is refused by both; its first line says whether by the schema, at
which place, by a rule, in which words, or by what the server checks of every object. `unaccepted`
is taken by the cluster and refused by the models, in the words of its first line: the controller
then says `Accepted=False`.
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
_NOBODY: Final = uuid.UUID(int=0)


@dataclass(frozen=True)
class Case:
    """One manifest; `means` is what must refuse it, `place` where, and `words` why.

    Means are the schema, which says where; a rule of it, which says where and why; the server's own
    care of every object; or the models.
    """

    verdict: str
    name: str
    text: str
    means: str = ""
    place: str = ""
    words: str = ""


def of(verdict: str) -> list[Case]:
    """Read the manifests of one verdict."""
    return [_case(file) for file in sorted((FOLDER / verdict).glob("*.yaml"))]


def _case(file: pathlib.Path) -> Case:
    text = file.read_text(encoding="utf-8")
    head = text.partition("\n")[0]
    means, _, said = head.removeprefix("# ").partition(": ") if head[0] == "#" else ("", "", "")
    place, _, words = said.partition(": ") if means in {"schema", "rule"} else ("", "", said)
    return Case(file.parent.name, file.stem, text, means, place, words)


def refusal(text: str) -> str | None:
    """Say why what is submitted with this manifest is refused; None if it is not."""
    try:
        for manifest in load.load([load.ManifestSource("f", text.encode())]):
            match manifest.resource:
                case Job() as job:
                    planner.plan_job(job, _NOBODY)
                case Workflow() as workflow:
                    planner.plan_workflow(workflow, _NOBODY)
                case WorkerPool():
                    pass
    except errors.WorkronError as error:
        return str(error)
    return None
