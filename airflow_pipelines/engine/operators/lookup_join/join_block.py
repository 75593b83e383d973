"""A join block whose sources are plain relations."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql.types import DataType

from airflow_pipelines.engine.execution.context import Context
from airflow_pipelines.engine.execution.ways import Budget, Declined
from airflow_pipelines.engine.operators.lookup_join.matches import known_name
from airflow_pipelines.engine.spark.arrow_frames import arrow_schema
from airflow_pipelines.program.names import quote
from airflow_pipelines.sql.plan.ir.join_graph import SourceColumn
from airflow_pipelines.sql.plan.ir.linear import Linear, Select
from airflow_pipelines.sql.plan.ir.passed_rows import PassedRows, passed_rows


@dataclass(frozen=True, slots=True)
class JoinBlock:
    """A join block whose sources all pass on the rows of a relation.

    :param node: the block
    :param context: the context of the step
    :param sources: the rows that each source passes on, and the names of their columns
    :param kinds: the types of the columns that the block reads
    :param changed: the relations that the step changes
    """

    node: Select
    context: Context
    sources: tuple[PassedRows, ...]
    kinds: Mapping[SourceColumn, DataType]
    changed: Set[str]

    @property
    def plain(self) -> Mapping[str, SourceColumn]:
        """The columns that the block reads, by their texts."""
        return {f"{quote(alias)}.{quote(name)}": (alias, name) for alias, name in self.kinds}

    def alias(self, place: int) -> str:
        """Return the name of a source in the block."""
        return self.node.sources[place].alias

    def columns(self, place: int) -> list[SourceColumn]:
        """Return the columns of a source that the block reads."""
        return [column for column in self.kinds if column[0] == self.alias(place)]

    def stored_names(self, place: int) -> dict[str, str]:
        """Return the names in the relation of the columns that the block reads, by their names among known rows."""
        return {known_name(column): self.sources[place].columns[column[1]] for column in self.columns(place)}

    def arrow_types(self, place: int) -> dict[str, pa.DataType]:
        """Return the types of these columns."""
        schema = arrow_schema(self.context.relations[self.sources[place].relation].before.schema)
        return {name: schema.field(stored).type for name, stored in self.stored_names(place).items()}


def join_block(node: Linear, context: Context) -> JoinBlock:
    """Return a node as a join block.

    :param node: any linear node
    :param context: the context of the step
    :raises Declined: if the node is not a join by columns of relations, or the step changes too much for the driver
    """
    if not isinstance(node, Select):
        raise Declined("not a block")
    graph, changed = node.join_graph, context.find_changed()
    if len(node.sources) < 2 or node.temporal_filters or graph.columns is None or not graph.is_complete or not graph.equalities:
        raise Declined("not a join by columns")
    delta = [batch for source in node.sources for name in source.node.reads & changed for batch in context.relations[name].delta]
    Budget(context.limits.driver_rows).require(sum(batch.rows for batch in delta))
    sources, kinds = [], {}
    for source in node.sources:
        rows = passed_rows(source.node)
        if rows is None or not graph.columns[source.alias] <= rows.columns.keys():
            raise Declined("a source computes")
        sources.append(rows)
        schema = context.relations[rows.relation].before.schema
        for name in sorted(graph.columns[source.alias]):
            kinds[source.alias, name] = schema[rows.columns[name]].dataType
    return JoinBlock(node, context, tuple(sources), kinds, changed)
