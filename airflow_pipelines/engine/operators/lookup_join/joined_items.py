"""The items of a join block for the matches of all its sources' deltas. One query evaluates those that are not plain columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from airflow_pipelines.engine.batch import weighted
from airflow_pipelines.engine.execution.row_queries import ComputedValues
from airflow_pipelines.engine.execution.ways import Budget
from airflow_pipelines.engine.operators.lookup_join.conditions import JoinedColumns, compute_items
from airflow_pipelines.engine.operators.lookup_join.join_block import JoinBlock
from airflow_pipelines.engine.operators.lookup_join.matches import Matches, known_name
from airflow_pipelines.engine.spark.arrow_frames import arrow_schema
from airflow_pipelines.rows.arrow import cast_to_schema
from airflow_pipelines.rows.zsets import WEIGHT
from airflow_pipelines.sql.plan.ir.join_graph import Conjunct


def items_of(block: JoinBlock, all_matches: Sequence[Matches], conditions: Sequence[Conjunct]) -> pa.Table:
    """Return the items of a block for some matches, and the weight.

    :param block: the block
    :param all_matches: matches of all its sources
    :param conditions: the conditions that the matches still have to meet; conditions that some of them meet already do no harm
    :raises Declined: if the items take too many bytes
    """
    schema = arrow_schema(weighted(block.context.schema(block.node)))
    plain, items = block.plain, block.node.items
    expressions = [at for at, item in enumerate(items) if item.text not in plain]
    all_matches = [matches for matches in all_matches if matches.rows]
    computed: Mapping[str, pa.ChunkedArray] = {}
    if all_matches and (conditions or expressions):
        values = _compute_items(block, all_matches, conditions, expressions)
        computed = {items[at].name: values.columns[f"e{number}"] for number, at in enumerate(expressions)}
        all_matches = all_matches if values.rows is None else _at(all_matches, values.rows)
    passed = {item.name: known_name(plain[item.text]) for item in items if item.text in plain}
    parts, at, budget = [schema.empty_table()], 0, Budget(block.context.limits.driver_bytes)
    for matches in all_matches:
        columns = matches.take(dict.fromkeys(passed.values()), budget)
        own = {name: column.slice(at, matches.rows) for name, column in computed.items()}
        shown = {item.name: columns[passed[item.name]] if item.name in passed else own[item.name] for item in items}
        parts.append(cast_to_schema(pa.table({**shown, WEIGHT: matches.weights()}), schema))
        at += matches.rows
    return pa.concat_tables(parts)


def _compute_items(
    block: JoinBlock, all_matches: Sequence[Matches], conditions: Sequence[Conjunct], items: Sequence[int]
) -> ComputedValues:
    """Return Spark's values of some items for the matches that meet conditions.

    :param items: the indices of the items
    :raises Declined: if it would read too many bytes
    """
    of_items = block.node.join_graph.item_columns or ()
    sets = [*(part.columns for part in conditions), *(of_items[at] for at in items)]
    columns = [column for column in block.kinds if any(column in read for read in sets)]
    budget = Budget(block.context.limits.driver_bytes)
    parts = [matches.take(map(known_name, columns), budget) for matches in all_matches]
    together = [pa.chunked_array([chunk for part in parts for chunk in part[known_name(column)].chunks]) for column in columns]
    kinds = [block.kinds[column] for column in columns]
    rows = JoinedColumns(columns, kinds, together, sum(matches.rows for matches in all_matches))
    return compute_items(rows, [part.text for part in conditions], [block.node.items[at].text for at in items], block.context)


def _at(all_matches: Sequence[Matches], places: npt.NDArray[np.int64]) -> list[Matches]:
    """Return the matches at some places among all. The places are in order."""
    kept, first = [], 0
    for matches in all_matches:
        ends = np.searchsorted(places, (first, first + matches.rows))
        kept.append(matches.at(places[slice(*ends)] - first))
        first += matches.rows
    return [matches for matches in kept if matches.rows]
