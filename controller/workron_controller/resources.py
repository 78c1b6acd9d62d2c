"""How the cluster calls what we have in it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from workron.core.plan import Kind

if TYPE_CHECKING:
    from collections.abc import Mapping

GROUP: Final = "workron.dev"
VERSION: Final = "v1alpha1"


class Resource(NamedTuple):
    """A kind of object, as its URL has it."""

    group: str
    version: str
    plural: str


JOBS: Final = Resource(GROUP, VERSION, "workronjobs")
WORKFLOWS: Final = Resource(GROUP, VERSION, "workronflows")
POOLS: Final = Resource(GROUP, VERSION, "workerpools")
BY_KIND: Final[Mapping[Kind, Resource]] = {Kind.JOB: JOBS, Kind.WORKFLOW: WORKFLOWS}
