"""The modules of the product, for the tests that count over all of its code."""

import pathlib

ROOT = pathlib.Path(__file__).parents[2]
PACKAGES = (
    ROOT / "workron",
    ROOT / "controller" / "workron_controller",
    ROOT / "worker_image" / "workron_worker",
    ROOT / "worker_image" / "workron_runner",
)


def modules() -> dict[str, str]:
    """Return the text of each module by its path in the repository."""
    paths = (path for package in PACKAGES for path in sorted(package.rglob("*.py")))
    return {str(path.relative_to(ROOT)): path.read_text() for path in paths}
