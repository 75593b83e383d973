"""Rows of a join block's sources that are known in memory, and the hops from them to matching rows of other sources."""

from __future__ import annotations

import functools
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from airflow_pipelines.engine.batch import Batch
from airflow_pipelines.engine.execution.context import Context
from airflow_pipelines.engine.execution.ways import Declined, first_accepted
from airflow_pipelines.engine.operators.lookup_join.matching import distinct_rows, matching_batch, same_kind
from airflow_pipelines.engine.spark.type_text import type_text
from airflow_pipelines.sql.plan.ir.linear import Select
from airflow_pipelines.sql.plan.ir.version import Version


@dataclass(frozen=True, slots=True)
class Hop:
    """The rows of ``relation``, which the source at ``place`` reads, that match the known rows; perhaps with others."""

    place: int
    relation: str
    batch: Batch


@dataclass(slots=True)
class Known:
    """The known rows of the relation below each of a block's sources, by the index of the source.

    Conditions are ignored. So there are more rows than the block will use, which costs a little and changes nothing.
    """

    context: Context
    rows: dict[int, pa.Table]

    @classmethod
    def of_delta(cls, node: Select, at: int, context: Context) -> Known:
        """Return the first known rows: the delta of the source at ``at``, if it is that of one relation and in memory."""
        for equality in node.join_graph.equalities:
            for side in (0, 1):
                if equality.aliases[side] == node.sources[at].alias:
                    base = equality.columns[side]
                    batches = context.relations[base[0]].delta if base is not None else ()
                    if batches and all(batch.table is not None for batch in batches):
                        return cls(context, {at: pa.concat_tables([batch.table for batch in batches])})
        return cls(context, {})

    def hop(self, node: Select, missing: Collection[int], small: Collection[int], versions: Mapping[int, Version]) -> Hop:
        """Look up one of the ``missing`` sources.

        :param small: the sources that are in memory
        :raises Declined: if none can be looked up
        """
        starts = (*self.rows, *small)
        hop = first_accepted(
            *(functools.partial(self._find_hop, node, start, place, versions) for start in starts for place in sorted(missing)),
            _decline_hop,
        )
        self.rows[hop.place] = hop.batch.to_arrow()
        return hop

    def _find_hop(self, node: Select, start: int, place: int, versions: Mapping[int, Version]) -> Hop:
        source, other = node.sources[place], node.sources[start]
        wanted: dict[str, Any] = {}
        relation = None
        for equality in node.join_graph.equalities:
            for side in (0, 1):
                if (equality.aliases[side], equality.aliases[1 - side]) == (source.alias, other.alias):
                    mine, theirs = equality.columns[side], equality.columns[1 - side]
                    if mine is not None and theirs is not None and same_kind(self._kind(mine), self._kind(theirs)):
                        relation = mine[0]
                        wanted.setdefault(mine[1], (theirs, equality.texts[1 - side]))
        if relation is None:
            raise Declined("no equality of columns of the same type")
        values = self._values(start, [theirs for theirs, _ in wanted.values()], versions)
        stored = self.context.relations[relation]
        keys = distinct_rows(dict(zip(wanted, values, strict=True)))
        # NULL matches nothing under =.
        keys = keys.drop_null()
        batches = stored.batches(versions[place])
        batch = matching_batch(batches, stored.before.schema, keys, self.context.limits, node.join_graph.reads.get(source.alias))
        return Hop(place, relation, batch)

    def _kind(self, column: tuple[str, str]) -> str:
        return type_text(self.context.relations[column[0]].before.schema[column[1]].dataType)

    def _values(self, start: int, columns: list[tuple[str, str]], versions: Mapping[int, Version]) -> list[pa.ChunkedArray]:
        """Return the values of columns of the known rows at an index, or of a small relation.

        :raises Declined: if neither exists
        """
        if start in self.rows:
            table = self.rows[start]
        else:
            batches = self.context.relations[columns[0][0]].batches(versions[start])
            rows = sum(batch.rows for batch in batches)
            if not batches or rows > self.context.limits.small_rows or any(batch.table is None for batch in batches):
                raise Declined("the relation is not small")
            table = pa.concat_tables([batch.table for batch in batches])
        return [table[name] for _, name in columns]


def _decline_hop() -> Hop:
    raise Declined("no source can be looked up")
