"""The effect of new rows on totals by session, computed in the driver. Keys, times and values must be plain columns."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import StructType

from airflow_pipelines.engine.batch import Batch, weighted
from airflow_pipelines.engine.execution.context import Context
from airflow_pipelines.engine.execution.outcome import struct_of
from airflow_pipelines.engine.execution.ways import Budget, Declined
from airflow_pipelines.engine.lookup.index import can_look_up
from airflow_pipelines.engine.operators.column_totals import ColumnTotals, totals_by_group
from airflow_pipelines.engine.operators.first_rows import group_numbers
from airflow_pipelines.engine.operators.lookup_join.matching import distinct_rows, matching_table
from airflow_pipelines.engine.operators.passed_deltas import passed_delta
from airflow_pipelines.engine.spark.arrow_frames import arrow_schema
from airflow_pipelines.rows.arrow import ArrowColumn
from airflow_pipelines.rows.zsets import WEIGHT, Merge, can_group, consolidate, merge_groupable
from airflow_pipelines.sql.plan.ir.aggregate import KeptValue
from airflow_pipelines.sql.plan.ir.expression import Expression
from airflow_pipelines.sql.plan.ir.linear import Linear
from airflow_pipelines.sql.plan.ir.passed_rows import PassedRows, passed_rows
from airflow_pipelines.sql.plan.ir.session_totals import SessionTime, SessionTotals

_Numbers = npt.NDArray[np.int64]
_BEFORE, _AFTER, _SESSION = "__before", "__after", "__session"
_NARROW = 5
"""The factor by which more rows are read of the few columns needed than of whole rows."""
_MOST_TIME = 2**62
"""The greatest time, in microseconds, that is handled here. With the gap, greater times may be too large for their type."""


def change_of_sessions(node: Linear, totals: SessionTotals, schema: StructType, context: Context) -> Batch:
    """Return the change of the totals by session.

    :param node: the node that produces the rows
    :param totals: the totals to compute
    :param schema: the columns of the result, and the weight
    :param context: the context with the rows
    :raises Declined: if an expression produces the rows, or if they are too many for one process
    """
    passed = passed_rows(node)
    values = [one.column_total.value for one in totals.accumulators if one.column_total is not None]
    columns = list(dict.fromkeys([*totals.keys, totals.time, *(value for value in values if value is not None)]))
    if passed is None or not set(columns) <= passed.columns.keys():
        raise Declined("the node computes")
    rows = _find_touched_rows(passed, totals, columns, context)
    ordered = _Ordered(rows, totals)
    try:
        parts = [ordered.sessions(version, weight, schema) for version, weight in ((_AFTER, 1), (_BEFORE, -1))]
    except pa.ArrowInvalid:
        # Spark raises an error that names the sum which does not fit its type.
        raise Declined("a sum does not fit its type") from None
    return Batch.in_memory(schema, consolidate(pa.concat_tables(parts)))


def _find_touched_rows(passed: PassedRows, totals: SessionTotals, columns: list[str], context: Context) -> pa.Table:
    """Return the touched keys' rows, with the number of each before and after.

    :raises Declined: if they are too many, or of other types
    """
    limits = replace(context.limits, small_rows=_NARROW * context.limits.fan_out, fan_out=_NARROW * context.limits.fan_out)
    parts, budget = list[pa.Table](), Budget(limits.fan_out)
    for part in passed_delta(passed, columns, context):
        budget.spend(part.num_rows)
        parts.append(_add_counts(part, before=False))
    if not parts or not _can_add_up(parts[0].schema, totals):
        raise Declined("no row has changed, or Arrow does not group by the types of the keys as Spark does")
    new = pa.concat_tables(parts)
    keys = distinct_rows({passed.columns[name]: new[name] for name in totals.keys})
    before = context.relations[passed.relation].before
    if any(batch.rows for batch in before.batches):
        read = [*dict.fromkeys(passed.columns[name] for name in columns), WEIGHT]
        matches = matching_table(before.batches, keys, read, limits)
        stored = pa.table([*(matches[passed.columns[name]] for name in columns), matches[WEIGHT]], [*columns, WEIGHT])
        new = pa.concat_tables([_add_counts(stored, before=True), new])
    rows = new.filter(new[totals.time].is_valid())
    extremes = pc.min_max(rows[totals.time].cast(pa.int64())).as_py()
    if any(value is not None and abs(value) > _MOST_TIME for value in extremes.values()):
        raise Declined("a time is too large")
    merged = merge_groupable(rows, {_BEFORE: Merge.SUM, _AFTER: Merge.SUM})
    for version in (_BEFORE, _AFTER):
        Budget(limits.fan_out).require(int(np.maximum(merged[version].to_numpy(), 0).sum()))
    return merged


def _can_add_up(schema: pa.Schema, totals: SessionTotals) -> bool:
    """Return True if Arrow groups by the keys as Spark does and can merge equal rows, and the time is a timestamp."""
    by_key = all(can_look_up(schema.field(name).type) for name in totals.keys)
    return by_key and can_group(schema) and pa.types.is_timestamp(schema.field(totals.time).type)


def _add_counts(rows: pa.Table, *, before: bool) -> pa.Table:
    """Return rows with columns for the number of each before and after the step."""
    plain, weights = rows.drop_columns([WEIGHT]), rows[WEIGHT]
    was = weights if before else pa.array(np.zeros(rows.num_rows, np.int64))
    return plain.append_column(_BEFORE, was).append_column(_AFTER, weights)


class _Ordered:
    """Rows in the order of their keys and times."""

    def __init__(self, rows: pa.Table, totals: SessionTotals) -> None:
        """:param rows: distinct rows, with the number of each before and after the step."""
        self._totals = totals
        groups = group_numbers(rows, totals.keys)
        times: _Numbers = rows[totals.time].cast(pa.int64()).to_numpy()
        order = np.lexsort((times, groups))
        self._rows, self._order = rows, order
        self._groups, self._times = groups[order], times[order]

    def sessions(self, version: str, weight: int, schema: StructType) -> pa.Table:
        """Return the sessions of one version.

        :param version: the column with the number of each row in the version
        :param weight: the weight of each session in the result
        :param schema: the columns of the result, and the weight
        :raises pa.ArrowInvalid: if a sum does not fit its type
        """
        number = self._rows[version].to_numpy()[self._order]
        there = np.flatnonzero(number > 0)
        groups, times = self._groups[there], self._times[there]
        begins = np.ones(len(there), bool)
        begins[1:] = (groups[1:] != groups[:-1]) | (times[1:] - times[:-1] > self._totals.gap)
        at = np.flatnonzero(begins)
        last = np.append(at[1:], len(there))[: len(at)] - 1
        counts = number[there]
        added = self._add_up(np.repeat(there, counts), np.repeat(np.cumsum(begins) - 1, counts))
        keys = self._rows.take(pa.array(self._order[there[at]]))
        moments = {SessionTime.START: times[at], SessionTime.END: times[last] + self._totals.gap}
        target = arrow_schema(schema)
        columns: list[ArrowColumn] = []
        for place, output in enumerate(self._totals.outputs):
            match output:
                case SessionTime():
                    column = pa.array(moments[output])
                case KeptValue():
                    column = _compute_kept_value(output, added)
                case _:
                    column = keys[output]
            columns.append(column.cast(target.field(place).type))
        return pa.table([*columns, pa.array(np.full(len(at), weight))], schema=target)

    def _add_up(self, places: _Numbers, sessions: _Numbers) -> pa.Table:
        """Return the accumulators of all sessions in their order.

        :param places: the places of the rows, each as often as the row exists
        :param sessions: the numbers of the rows' sessions
        """
        rows = self._rows.take(pa.array(self._order[places]))
        accumulators = self._totals.accumulators
        texts = [None if one.column_total is None else one.column_total.value for one in accumulators]
        totals = ColumnTotals(None, {}, (Expression(_SESSION),), tuple(zip(accumulators, texts, strict=True)))
        kinds = struct_of((("k0", "bigint"), *((one.name, one.type) for one in accumulators)))
        values: dict[str, ArrowColumn] = {name: rows[name] for name in rows.column_names}
        ones = pa.array(np.ones(len(places), np.int64))
        added = totals_by_group({**values, _SESSION: pa.array(sessions)}, ones, totals, arrow_schema(weighted(kinds)))
        return added.sort_by("k0")


def _compute_kept_value(output: KeptValue, added: pa.Table) -> ArrowColumn:
    column = added[output.accumulator]
    if output.count is None:
        return column
    return pc.if_else(pc.greater(added[output.count], 0), column, pa.scalar(None, column.type))
