"""The page about pools has each field and each reason."""

import pathlib
import re

from workron.core.model.workerpool import WorkerPoolSpec
from workron_controller.workerpools import status

_PAGE = (pathlib.Path(__file__).parents[3] / "docs" / "reference" / "worker-pools.md").read_text()


def _rows(heading: str) -> str:
    """Return the first cells of the tables in a section of the page."""
    part = _PAGE.partition(f"## {heading}\n")[2].partition("\n## ")[0]
    return " ".join(line.split("|")[1] for line in part.splitlines() if line.startswith("| "))


def test_every_field_has_a_row() -> None:
    fields = WorkerPoolSpec.model_json_schema(by_alias=True)["properties"]
    assert set(re.findall(r"`(\w+)`", _rows("Fields"))) == set(fields)


def test_every_reason_has_a_row() -> None:
    reasons = {
        value
        for name, value in vars(status).items()
        if name.isupper()
        and name[0] != "_"
        and isinstance(value, str)
        and re.fullmatch(r"([A-Z][a-z]+)+", value)
    }
    assert len(reasons) > 10
    listed = set(re.findall(r"`(\w+)`", _rows("Status")))
    assert listed == (reasons - {status.POOL_NOT_FOUND}) | {"Ready", "ScaledToZero", "Starting"}
    assert f"`{status.POOL_NOT_FOUND}`" in _PAGE
