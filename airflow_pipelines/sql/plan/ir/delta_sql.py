"""A printer of the deltas of linear nodes as SQL.

Filters, projections and unions apply to the delta alone; inner joins are bilinear.
"""

from __future__ import annotations

from collections.abc import Callable, Set
from dataclasses import dataclass

from airflow_pipelines.program.names import quote
from airflow_pipelines.sql.plan.ir.linear import Linear, Scan, Select, Source, TemporalFilter, UnionAll
from airflow_pipelines.sql.plan.ir.version import Version

WEIGHT = "__weight"
"""The name of the weight's column, also in the engine's batches."""

Reader = Callable[[str, Version], str | None]
"""A function that returns the table expression for a relation's version (its columns and the weight), or None if it has no rows."""

MovedRange = Callable[[TemporalFilter, str], str | None]
"""A function that returns the condition for the rows that a marker passes in this step, or None if there is surely none.

The marker is given by its relation's name.
"""


@dataclass(frozen=True, slots=True)
class DeltaSql:
    """A printer of nodes.

    :param read: the function that names the relations' versions
    :param single_partition: True to keep unions in one partition, which saves exchanges when everything is small
    :param broadcast: True to broadcast the delta of a join term, so that the other sides are streamed once
    :param moved_range: the function that restricts the terms of moving markers to the rows that they pass
    """

    read: Reader
    single_partition: bool = False
    broadcast: bool = False
    moved_range: MovedRange | None = None

    def contents(self, node: Linear, version: Version) -> str | None:
        """Return a query for a node's weighted contents, or None if there are none."""
        match node:
            case Scan():
                table = self.read(node.relation, version)
                return None if table is None else f"SELECT {_columns(node.columns)} FROM {table}"
            case UnionAll():
                return self._union(node, [self.contents(part, version) for part in node.parts])
            case Select():
                return self.select(node, [self.contents(source.node, version) for source in node.sources], None)

    def delta(self, node: Linear, changed: Set[str]) -> str | None:
        """Return a query for the delta of a node's contents when the relations in ``changed`` change, or None if it is empty.

        For a join of n sources it is the sum over changed sources i of: sources before i as they were, the delta of i, sources
        after i as they are now.
        """
        if not node.reads & changed:
            return None
        match node:
            case Scan():
                return self.contents(node, Version.DELTA)
            case UnionAll():
                return self._union(node, [self.delta(part, changed) for part in node.parts])
            case Select():
                terms = [self.term(node, at, changed) for at, source in enumerate(node.sources) if source.node.reads & changed]
                return self.union([term for term in terms if term is not None])

    def union(self, queries: list[str]) -> str | None:
        """Return the sum of queries with the same columns."""
        if len(queries) < 2:
            return queries[0] if queries else None
        hint = "/*+ COALESCE(1) */ " if self.single_partition else ""
        return f"SELECT {hint}* FROM ({' UNION ALL '.join(f'({query})' for query in queries)})"

    def term(self, node: Select, at: int, changed: Set[str]) -> str | None:
        """Return the query for the change of a block due to the delta of its source ``at``, or None if it is empty.

        :param node: the block
        :param at: the position of the source
        :param changed: the relations that change in the step
        """
        passed = self.moved_range_condition(node, at)
        if passed is None:
            return None
        tables: list[str | None] = []
        for position, source in enumerate(node.sources):
            if position == at:
                tables.append(self.delta(source.node, changed))
            elif position < at and source.node.reads & changed:
                tables.append(self.contents(source.node, Version.BEFORE))
            else:
                tables.append(self.contents(source.node, Version.AFTER))
        return self.select(node, tables, node.sources[at] if len(node.sources) > 1 else None, passed)

    def moved_range_condition(self, node: Select, at: int) -> str | None:
        """Return the condition for the rows that the source ``at`` passes when it moves (empty: any row), or None for no rows."""
        marker = node.sources[at].node
        filters = [temporal for temporal in node.temporal_filters if temporal.source == at]
        if self.moved_range is None or not filters or not isinstance(marker, Scan):
            return ""
        conditions = [self.moved_range(comparison, marker.relation) for comparison in filters]
        return " OR ".join(f"({condition})" for condition in conditions if condition is not None) or None

    def select(self, node: Select, tables: list[str | None], delta: Source | None, passed: str = "") -> str | None:
        """Return the block over queries for its sources, in order, or None if one of them has no rows.

        :param delta: the source that may be broadcast
        :param passed: a condition in addition to the block's own
        """
        queries = [table for table in tables if table is not None]
        if len(queries) < len(tables):
            return None
        aliases = [quote(source.alias) for source in node.sources]
        weight = " * ".join(f"{alias}.{WEIGHT}" for alias in aliases)
        items = "".join(f"{item.text} AS {quote(item.name)}, " for item in node.items)
        hint = f"/*+ BROADCAST({quote(delta.alias)}) */ " if self.broadcast and delta is not None else ""
        sources = " CROSS JOIN ".join(f"({table}) AS {alias}" for table, alias in zip(queries, aliases, strict=True))
        laterals = "".join(f" {lateral}" for lateral in node.laterals)
        condition = f"({node.where}) AND ({passed})" if node.where and passed else node.where or passed
        where = f" WHERE {condition}" if condition else ""
        return f"SELECT {hint}{items}{weight} AS {WEIGHT} FROM {sources}{laterals}{where}"

    def _union(self, node: UnionAll, queries: list[str | None]) -> str | None:
        # Each part is cast to the union's types separately, because a step may print only some of the parts.
        parts = []
        for query in queries:
            if query is not None:
                names = ", ".join(quote(f"c{at}") for at in range(len(node.types)))
                items = "".join(
                    f"CAST({quote(f'c{at}')} AS {kind}) AS {quote(name)}, " for at, (name, kind) in enumerate(node.types)
                )
                parts.append(f"SELECT {items}{WEIGHT} FROM ({query}) AS part({names}, {WEIGHT})")
        return self.union(parts)


def _columns(names: tuple[str, ...]) -> str:
    return "".join(f"{quote(name)}, " for name in names) + WEIGHT
