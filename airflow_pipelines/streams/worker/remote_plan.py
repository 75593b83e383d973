"""The plan of a program as it runs in a pipeline: sources are fed, and rows for relations are kept until they are taken."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from airflow_pipelines.streams.graph.chains import Plan
from airflow_pipelines.streams.operators.sink import Write
from airflow_pipelines.streams.operators.source import Read
from airflow_pipelines.streams.relations import RelationSink, RelationSource
from airflow_pipelines.streams.worker.remote_source import RemoteSource, with_operators, with_remote_sources

if TYPE_CHECKING:
    from airflow_pipelines.streams.worker.relation_ports import RelationPorts


@dataclass(frozen=True)
class RemotePlan:
    """A plan with its inputs and outputs.

    :param plan: the plan
    :param sources: its sources by uid
    :param ports: the entry and exit of rows of relations; None for a program without relations
    """

    plan: Plan
    sources: Mapping[str, RemoteSource]
    ports: RelationPorts | None

    @property
    def source_names(self) -> dict[str, str]:
        """The names of the sources by uid."""
        return {chain.head.uid: chain.head.name for chain in self.plan.chains if chain.head.uid in self.sources}


def remote_plan(plan: Plan, schemas: Mapping[str, bytes]) -> RemotePlan:
    """Return a plan in the form in which it runs in a pipeline.

    :param plan: the plan of the program
    :param schemas: the schemas of relations whose sinks do not know theirs, by uid of the operator
    :returns: the plan to run
    :raises StreamProgramError: if the schema of a relation is not known
    """
    fed, sources = with_remote_sources(plan)
    ports = _make_relation_ports(plan, schemas)
    return RemotePlan(fed if ports is None else with_operators(fed, ports.operators()), sources, ports)


def _make_relation_ports(plan: Plan, schemas: Mapping[str, bytes]) -> RelationPorts | None:
    operators = [step.node.operator for chain in plan.chains for step in chain.steps]
    reads = any(isinstance(each, Read) and isinstance(each.source, RelationSource) for each in operators)
    if not reads and not any(isinstance(each, Write) and isinstance(each.sink, RelationSink) for each in operators):
        return None
    from airflow_pipelines.streams.worker import relation_ports  # importing Arrow takes longer than all else together

    return relation_ports.RelationPorts(plan, schemas)
