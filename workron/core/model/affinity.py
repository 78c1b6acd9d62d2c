"""Which nodes the workers of a pool go to, and next to which pods; Kubernetes' own words."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from workron.core.model import record
from workron.core.model.scalar import Label, LabelKey, Labels, LabelValue

_Operator = Literal["In", "NotIn", "Exists", "DoesNotExist"]  # codespell:ignore notin
_FEW = Field(max_length=100)
Values = Annotated[tuple[LabelValue, ...], record.LAX, _FEW]
Weight = Annotated[int, Field(ge=1, le=100)]


class NodeRequirement(record.Record):
    """A demand on one label, or one field, of a node."""

    key: LabelKey = Field(description="Key of the label.")
    operator: Literal[_Operator, "Gt", "Lt"] = Field(description="How its value is compared.")
    values: Values = Field((), description="What it is compared with.")


NodeRequirements = Annotated[tuple[NodeRequirement, ...], record.LAX, _FEW]


class NodeTerm(record.Record):
    """Demands on a node that must all hold."""

    match_expressions: NodeRequirements = Field((), description="Demands on its labels.")
    match_fields: NodeRequirements = Field((), description="Demands on its fields.")


class NodeSelector(record.Record):
    """Nodes for which one of the terms holds."""

    node_selector_terms: Annotated[
        tuple[NodeTerm, ...], record.LAX, Field(min_length=1, max_length=100)
    ] = Field(description="The terms.")


class PreferredNode(record.Record):
    """A wish for nodes."""

    weight: Weight = Field(description="How strong the wish is, 1 to 100.")
    preference: NodeTerm = Field(description="The nodes.")


class NodeAffinity(record.Record):
    """Demands and wishes for nodes."""

    required_during_scheduling_ignored_during_execution: NodeSelector | None = Field(
        None, description="Nodes outside of this are out of question."
    )
    preferred_during_scheduling_ignored_during_execution: Annotated[
        tuple[PreferredNode, ...], record.LAX, _FEW
    ] = Field((), description="Nodes that are better than others.")


class LabelRequirement(record.Record):
    """A demand on one label of an object."""

    key: LabelKey = Field(description="Key of the label.")
    operator: _Operator = Field(description="How its value is compared.")
    values: Values = Field((), description="What it is compared with.")


class LabelSelector(record.Record):
    """Objects that meet all of these demands."""

    match_labels: Labels = Field({}, description="Labels that they have.")
    match_expressions: Annotated[tuple[LabelRequirement, ...], record.LAX, _FEW] = Field(
        (), description="Demands on their labels."
    )


class PodTerm(record.Record):
    """Pods, and how near is near."""

    topology_key: LabelKey = Field(description="Nodes with one value of this label are near.")
    label_selector: LabelSelector | None = Field(None, description="Which pods.")
    namespaces: Annotated[tuple[Label, ...], record.LAX, _FEW] = Field(
        (), description="In which namespaces; default: the pool's."
    )
    namespace_selector: LabelSelector | None = Field(
        None, description="In which namespaces, by label."
    )


class PreferredPod(record.Record):
    """A wish for the nearness, or the distance, of pods."""

    weight: Weight = Field(description="How strong the wish is, 1 to 100.")
    pod_affinity_term: PodTerm = Field(description="The pods.")


class PodAffinity(record.Record):
    """Demands and wishes for the nearness, or the distance, of pods."""

    required_during_scheduling_ignored_during_execution: Annotated[
        tuple[PodTerm, ...], record.LAX, _FEW
    ] = Field((), description="Nodes outside of this are out of question.")
    preferred_during_scheduling_ignored_during_execution: Annotated[
        tuple[PreferredPod, ...], record.LAX, _FEW
    ] = Field((), description="Nodes that are better than others.")


class Affinity(record.Record):
    """Where workers are put."""

    node_affinity: NodeAffinity | None = Field(None, description="By labels of nodes.")
    pod_affinity: PodAffinity | None = Field(None, description="Near these pods.")
    pod_anti_affinity: PodAffinity | None = Field(None, description="Away from these pods.")
