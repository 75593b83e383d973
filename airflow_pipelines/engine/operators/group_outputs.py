"""The output of groups before and after a change. Keys and accumulators are read directly; Spark evaluates expressions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import StructType

from airflow_pipelines.engine.batch import Batch, weighted
from airflow_pipelines.engine.execution.context import Context
from airflow_pipelines.engine.execution.outcome import stage_schema
from airflow_pipelines.engine.execution.row_queries import RowQuery, compute_values
from airflow_pipelines.engine.execution.ways import Declined
from airflow_pipelines.engine.operators.merged_groups import MergedGroups
from airflow_pipelines.engine.spark.arrow_frames import arrow_schema, evaluable_type
from airflow_pipelines.rows.arrow import ArrowColumn
from airflow_pipelines.rows.expressions.columns import columns_read
from airflow_pipelines.rows.expressions.evaluation import evaluate
from airflow_pipelines.rows.zsets import WEIGHT
from airflow_pipelines.sql.plan.ir.aggregate import Aggregate, Call
from airflow_pipelines.sql.plan.ir.expression import Expression, columns_in
from airflow_pipelines.sql.plan.ir.stage import Stage

_SHOWN = "__shown"
_Places = npt.NDArray[np.int64]


def output_delta(
    stage: Stage, node: Aggregate, groups: MergedGroups, state_schema: StructType, context: Context, *, had_output: bool
) -> pa.Table:
    """Return the delta of a stage's output when groups change. Equal rows may be both inserted and deleted.

    :param stage: the aggregate's stage
    :param node: the aggregate, which has keys
    :param groups: the groups that change
    :param state_schema: the types of keys and accumulators
    :param context: the context that runs queries
    :param had_output: True if the groups were shown before
    :returns: the stage's columns and the weight
    :raises Declined: if a value does not fit its type, for which Spark raises an error, or there is much for Spark to do
    """
    versions = _versions(groups, state_schema, had_output=had_output)
    rows = versions.rows
    plain = [_plain_value(item.text, node, rows) or _evaluate(item.text, node, rows, state_schema) for item in node.items]
    target = arrow_schema(weighted(stage_schema(stage)))
    try:
        values = [None if value is None else value.column(target.field(at).type) for at, value in enumerate(plain)]
    except pa.ArrowInvalid:
        # Spark raises an error that names the value, if it is shown.
        raise Declined("a value does not fit its type") from None
    if node.having is None and None not in values:
        return pa.table([*values, versions.signs], names=target.names)
    judged = _evaluate_shown(node, [at for at, column in enumerate(values) if column is None], versions, state_schema, context)
    columns = [judged[f"__c{at}"] if column is None else column for at, column in enumerate(values)]
    return pa.table([*columns, versions.signs], names=target.names).filter(judged[_SHOWN])


@dataclass(frozen=True, slots=True)
class _Versions:
    """The groups before and after a change.

    :param rows: keys and accumulators
    :param signs: -1 for the earlier state of a group, and 1 for the new one
    """

    rows: pa.Table
    signs: pa.Array


def _versions(groups: MergedGroups, schema: StructType, *, had_output: bool) -> _Versions:
    """Return the groups that differ before and after the change, each in the versions that exist."""
    there = np.asarray(pc.greater(groups.after[WEIGHT], 0))
    was_there = np.asarray(pc.greater(groups.before[WEIGHT], 0)) & had_output
    differs = there != was_there
    for name, column in groups.after.items():
        if name != WEIGHT:
            differs |= _find_differences(column, groups.before[name])
    before, after = (np.flatnonzero(mask & differs) for mask in (was_there, there))
    arrow = arrow_schema(schema)
    columns = [
        pa.chunked_array([*_chunks(old, before), *_chunks(new, after)], arrow.field(name).type)
        for name in arrow.names
        for old, new in [_both(groups, name)]
    ]
    signs = np.concatenate([np.full(len(before), -1), np.full(len(after), 1)])
    return _Versions(pa.table(columns, schema=arrow), pa.array(signs, pa.int64()))


def _both(groups: MergedGroups, name: str) -> tuple[ArrowColumn, ArrowColumn]:
    if name in groups.keys:
        return groups.keys[name], groups.keys[name]
    return groups.before[name], groups.after[name]


def _chunks(column: ArrowColumn, places: _Places) -> list[pa.Array]:
    taken = column.take(pa.array(places))
    return list(taken.chunks) if isinstance(taken, pa.ChunkedArray) else [taken]


def _find_differences(one: ArrowColumn, other: ArrowColumn) -> npt.NDArray[np.bool_]:
    equal = pc.fill_null(pc.equal(one, other), False)
    mask: npt.NDArray[np.bool_] = np.asarray(pc.invert(pc.or_(equal, pc.and_(pc.is_null(one), pc.is_null(other)))))
    return mask


@dataclass(frozen=True, slots=True)
class _Plain:
    """A value of groups that is a plain column, except for its type.

    :param values: the column
    :param count: a column of counts; where it is 0 the value is NULL. None if there is none
    """

    values: ArrowColumn
    count: ArrowColumn | None = None

    def column(self, kind: pa.DataType) -> ArrowColumn:
        """Return the values in a type.

        :param kind: the type
        :raises pa.ArrowInvalid: if one does not fit
        """
        if self.count is None:
            return self.values.cast(kind)
        values = pc.if_else(pc.greater(self.count, 0), self.values, pa.scalar(None, self.values.type))
        return values.cast(kind)


def _plain_value(text: Expression, node: Aggregate, rows: pa.Table) -> _Plain | None:
    """Return an item that is a key, a field of a key, or the stored value of a call, or None for an expression."""
    if text in (key.name for key in node.keys):
        return _Plain(rows[text])
    match text.column_name:
        case (key, field) if key in rows.column_names and pa.types.is_struct(rows[key].type):
            return _Plain(pc.struct_field(rows[key], field)) if rows[key].type.get_field_index(field) >= 0 else None
    call = next((call for call in node.calls if call.name == text), None)
    if call is None or call.kept is None:
        return None
    return _Plain(rows[call.kept.accumulator], None if call.kept.count is None else rows[call.kept.count])


def _evaluate(text: Expression, node: Aggregate, rows: pa.Table, schema: StructType) -> _Plain | None:
    """Return an expression of keys and calls that Arrow evaluates as Spark does, or None for one that is left to Spark."""
    tree = text.tree
    if tree is None:
        return None
    keys = {key.name for key in node.keys}
    calls = {call.name: call.type for call in node.calls}
    columns = {}
    for name in columns_read(tree):
        value = _plain_value(Expression(name[0]), node, rows) if len(name) == 1 else None
        is_exact = evaluable_type(schema[name[0]].dataType) is not None if name[0] in keys else calls.get(name[0]) == "bigint"
        if value is None or not is_exact:
            return None
        try:
            # An accumulator has room for more than its call, for which Spark fails.
            columns[name] = value.column(value.values.type if name[0] in keys else pa.int64())
        except pa.ArrowInvalid:
            return None
    values = evaluate(tree, columns, rows.num_rows)
    return None if values is None else _Plain(values)


def _evaluate_shown(node: Aggregate, items: Sequence[int], versions: _Versions, schema: StructType, context: Context) -> pa.Table:
    """Return for each version a flag that it is shown, and the items at some places if it is."""
    texts = {at: node.items[at].text for at in items}
    shown_texts = [*texts.values(), *([node.having] if node.having else [])]
    calls = _find_calls_read(node.calls, shown_texts)
    names = {*columns_in([*shown_texts, *calls.values()], schema.names)} - {WEIGHT}
    values = "".join(f", {value} AS {name}" for name, value in calls.items())
    condition = f"CASE WHEN {node.having} THEN TRUE ELSE FALSE END" if node.having else "TRUE"
    # An expression is evaluated only for groups that are shown: it may fail for others.
    shown = "".join(f", CASE WHEN {_SHOWN} THEN {text} END AS __c{at}" for at, text in texts.items())

    def query(batch: Batch) -> str:
        groups = f"SELECT *{values} FROM {context.batch_views.table(batch)}"
        return f"SELECT {_SHOWN}{shown}, {WEIGHT} FROM (SELECT *, {condition} AS {_SHOWN} FROM ({groups}))"

    rows = versions.rows.select([name for name in versions.rows.column_names if name in names])
    return compute_values(RowQuery(query, schema), rows, context).columns


def _find_calls_read(calls: Sequence[Call], texts: Sequence[Expression]) -> Mapping[str, Expression]:
    """Return the expressions over accumulators of the calls that some texts read."""
    values = {call.name: call.value for call in calls if call.value is not None}
    return {name: values[name] for name in columns_in(texts, values)}
