"""The state of one view's plan while it is built: its stages, its analyzer and the names in use."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from airflow_pipelines.rows.spark_types import has_calendar_interval
from airflow_pipelines.sql.plan.analyzer import AnalysisFailed, Analyzer
from airflow_pipelines.sql.plan.expressions import NotIncremental
from airflow_pipelines.sql.plan.ir.linear import Linear, Scan, Select, UnionAll
from airflow_pipelines.sql.plan.ir.node import ColumnTypes, Node
from airflow_pipelines.sql.plan.ir.stage import Stage
from airflow_pipelines.sql.plan.ir.to_sql import to_sql
from airflow_pipelines.sql.plan.positions import Places


@dataclass(slots=True)
class Builder:
    """The plan of ``view`` while it is built.

    :param relations: the columns of each relation that the query may read
    :param places: the positions of the parts of its query
    """

    view: str
    relations: Mapping[str, ColumnTypes]
    analyzer: Analyzer
    places: Places
    stages: list[Stage] = field(default_factory=list)
    append_only: frozenset[str] = frozenset()
    """The append-only relations, which never lose a row."""
    noncanonical: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """The columns of each relation that hold a part of the query and whose values Spark may represent differently."""
    _names: int = 0

    def types(self, query: str) -> ColumnTypes:
        """Return the names and types of a query's columns.

        :param query: Spark SQL
        :raises NotIncremental: if Spark refuses it, or no relation can have these types
        """
        try:
            types = self.analyzer.columns(query)
        except AnalysisFailed as error:
            raise NotIncremental(f"Spark does not accept the plan's text: {error}") from error
        if any(" collate " in kind for _, kind in types):
            raise NotIncremental(
                "no relation holds text with a collation: LOWER(...) instead of COLLATE UTF8_LCASE follows changes"
            )
        if any(has_calendar_interval(kind) for _, kind in types):
            raise NotIncremental("an interval that mixes months with days or times cannot be stored")
        return types

    def stage(self, node: Node) -> Scan:
        """Add a stage: an internal relation with the rows of a node.

        :returns: a scan of the relation
        """
        columns = self.types(to_sql(node))
        if len({name for name, _ in columns}) < len(columns):
            raise NotIncremental("a derived table has two columns of one name")
        relation = f"{self.view}${len(self.stages) + 1}"
        self.analyzer.declare({relation: columns})
        self.stages.append(Stage(relation, columns, node))
        return Scan(relation, tuple(name for name, _ in columns))

    def is_append_only(self, node: Linear) -> bool:
        """Return True if a node is append-only because all relations that it reads are."""
        made = {stage.relation: stage.node for stage in self.stages}
        for name in node.reads:
            below = made.get(name)
            if name not in self.append_only and not (isinstance(below, Select | UnionAll) and self.is_append_only(below)):
                return False
        return True

    def drop_stages_after(self, made: int) -> None:
        """Remove all but the first ``made`` stages."""
        del self.stages[made:]

    def linear(self, node: Node | Scan) -> Linear:
        """Return a node that FROM can read: a linear node as it is, any other one as an internal relation."""
        return node if isinstance(node, Scan | Select | UnionAll) else self.stage(node)

    def rereadable(self, node: Linear) -> Linear:
        """Return a node whose contents are cheap to read again: one relation, or a filter and projection of it.

        A join or union becomes an internal relation, so that its result is stored instead of being computed each time.
        """
        return node if isinstance(node, Scan) or _is_cheap(node) else self.stage(node)

    def name(self, prefix: str) -> str:
        """Return a name that is unique in the view's plan."""
        self._names += 1
        return f"__{prefix}{self._names}"


def _is_cheap(node: Linear) -> bool:
    match node:
        case Scan():
            return True
        case Select():
            return len(node.sources) == 1 and not node.laterals and _is_cheap(node.sources[0].node)
        case UnionAll():
            return False
