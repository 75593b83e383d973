"""Aggregates whose calls all follow from accumulators: the input's delta is added to the accumulators of its groups."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import StructType

from airflow_pipelines.engine.batch import WEIGHT, Batch, weighted
from airflow_pipelines.engine.execution.context import Context, Mode
from airflow_pipelines.engine.execution.outcome import Outcome, stage_schema, struct_of
from airflow_pipelines.engine.execution.ways import Declined, TooMuch, first_accepted
from airflow_pipelines.engine.operators.column_totals import ColumnTotals, united_totals
from airflow_pipelines.engine.operators.group_outputs import output_delta
from airflow_pipelines.engine.operators.lookup_join.fetch import Delta, delta_of
from airflow_pipelines.engine.operators.merged_groups import merged_groups
from airflow_pipelines.engine.operators.operator import Operator
from airflow_pipelines.engine.spark.failures import with_texts_of_names
from airflow_pipelines.engine.state import Kept, StateSchema
from airflow_pipelines.engine.trace import Trace
from airflow_pipelines.program.names import quote
from airflow_pipelines.rows.zsets import Merge
from airflow_pipelines.sql.plan.ir.aggregate import Accumulator, Aggregate
from airflow_pipelines.sql.plan.ir.expression import Expression
from airflow_pipelines.sql.plan.ir.stage import Stage

_SIGN = "__sign"
_SHOWN = "__shown"
_TOUCHED = "__touched"
_STORED_TIMES = 2
"""The maximum number of stored rows of groups in all batches, as a multiple of the maximum number of groups in one process."""
GROUPS = "groups"
"""The name of the state."""


class AccumulateOperator(Operator[Aggregate]):
    """The operator that adds the input's delta to the accumulators of the groups that it touches."""

    def state_schemas(self) -> Mapping[str, StateSchema]:
        """Return the schema of the groups: keys and accumulators of each. The weight is the number of the group's rows."""
        node = self.node
        columns = [(key.name, kind) for key, kind in zip(node.keys, node.key_types, strict=True)]
        columns += [(accumulator.name, accumulator.type) for accumulator in node.accumulators]
        merges = {accumulator.name: accumulator.merge for accumulator in node.accumulators}
        return {GROUPS: StateSchema(struct_of(tuple(columns)), merges)}

    def evaluate(self, context: Context, kept: Kept) -> Outcome:
        """Evaluate the step, see :class:`Operator`."""
        state = kept.state(GROUPS)
        known = self.empty_states()[GROUPS] if state is None else state
        return _evaluate(self.stage, self.node, context, known, is_first=state is None)

    def in_query_terms(self, expression: str) -> str:
        """Return the expression with the texts of the input's columns, see :class:`Operator`."""
        return with_texts_of_names(expression, {item.name: item.text for item in self.node.input.items})


def _evaluate(stage: Stage, node: Aggregate, context: Context, known: Trace, *, is_first: bool) -> Outcome:
    """Return the delta of an aggregate and of its state."""
    delta = delta_of(node.input, context)
    change = _group_sql(node, delta.query, unit_weights=context.gains(node.input.reads))
    # Without keys there is a change even without rows, but only before the first evaluation.
    if change is None or (delta.query is None and not is_first):
        return Outcome(Batch.empty(weighted(stage_schema(stage))))
    had_output = not is_first and (not node.keys or bool(known.batches))
    work = _Work(_Groups(stage, node, context, known, had_output), delta, change)
    return first_accepted(work.add_up, work.query_at_once, work.query_first, work.query_change)


@dataclass(frozen=True)
class _Work:
    """The evaluation of one step: the change of the groups that the delta touches, and the outcome of this change.

    :param groups: the groups
    :param delta: the delta of the aggregate's input
    :param change: the query for the change of the groups
    """

    groups: _Groups
    delta: Delta
    change: str

    def add_up(self) -> Outcome:
        """Aggregate rows in memory by Arrow."""
        parts = self._rows_in_memory()
        if not parts:
            raise Declined("the rows or their values are not for Arrow")
        has_few_rows = self.groups.context.is_few(batch for _, batches in parts for batch in batches)
        if self._is_little and has_few_rows and any(totals.needs_spark for totals, _ in parts):
            raise Declined("one query of Spark is enough")
        return self.groups.apply(united_totals(parts, self.groups.known.schema, self.groups.context))

    def query_at_once(self) -> Outcome:
        """Compute the change and the output by one query, for few rows and few groups."""
        if not self._is_little:
            raise TooMuch("rows or groups for one query")
        return self.groups.merge(self.change, Mode.SMALL)

    def query_first(self) -> Outcome:
        """Compute the state and the output by one query, for many rows where no group was stored before."""
        if self.delta.mode is not Mode.LARGE or self.groups.known.batches or self.groups.had_output:
            raise Declined("there are groups already, or few rows")
        return self.groups.create(self.change)

    def query_change(self) -> Outcome:
        """Compute the change by a query, and then what follows from it."""
        context = self.groups.context
        return self.groups.apply(context.run(self.change, self.groups.known.schema, self.delta.mode, may_grow=True))

    @functools.cached_property
    def _is_little(self) -> bool:
        known, context = self.groups.known, self.groups.context
        return self.delta.mode is Mode.SMALL and known.in_memory and context.is_few(known.batches)

    def _rows_in_memory(self) -> Sequence[tuple[ColumnTotals, Sequence[Batch]]]:
        """Return the totals that the driver can aggregate, each with its rows, or nothing if it cannot."""
        node, context = self.groups.node, self.groups.context
        if self.delta.joined is not None:
            of_input = ColumnTotals.of_input(node)
            return [] if of_input is None else [(of_input, [self.delta.joined])]
        of_rows = ColumnTotals.of(node)
        parts = ColumnTotals.of_parts(node) if of_rows is None else (of_rows,)
        return [(totals, context.relations[totals.relation].delta) for totals in parts if totals.relation is not None]


@dataclass(frozen=True, slots=True)
class _Groups:
    """The stored groups of an aggregate, and the outcomes of their changes.

    :param known: the stored accumulators
    :param had_output: True if the groups were shown before
    """

    stage: Stage
    node: Aggregate
    context: Context
    known: Trace
    had_output: bool

    def apply(self, change: Batch) -> Outcome:
        """Return the outcome of a change.

        :param change: what is added to the accumulators of each group
        """
        return first_accepted(lambda: self._add_in_driver(change), lambda: self._add_few(change), lambda: self._add_many(change))

    def merge(self, change: str, mode: Mode) -> Outcome:
        """Return the outcome of a change by one query over it and the stored groups.

        :param change: the query for the change
        :param mode: the mode in which the query runs
        """
        merged = _merge_accumulators(self.node, change, self.known, self.context, mode)
        wide = self.context.collect(_outputs(self.node, merged, had_output=self.had_output), mode)
        return _split(self.stage, self.node, wide, self.known.schema)

    def create(self, change: str) -> Outcome:
        """Return the outcome of a large change where nothing is stored. One query computes the state and the output.

        :param change: the query for the change
        """
        stage, node, context, state_schema = self.stage, self.node, self.context, self.known.schema
        shown = [(_SIGN, "int"), (_SHOWN, "boolean"), *((f"__c{at}", kind) for at, (_, kind) in enumerate(stage.columns))]
        schema = StructType([*state_schema.fields, *struct_of(tuple(shown)).fields])
        wide = context.evaluate(_new_output_sql(node, change), schema)
        if wide.table is not None or wide.store is None:
            return _split(stage, node, wide.to_arrow(), state_schema)
        # The state's batch shares the files and does not read their other columns.
        state = Batch.in_files(state_schema, wide.rows, wide.files, wide.store, wide.insert_only)
        columns = ", ".join(f"__c{at} AS {quote(name)}" for at, (name, _) in enumerate(stage.columns))
        output = f"SELECT {columns}, CAST(1 AS BIGINT) AS {WEIGHT} FROM {context.batch_views.table(wide)} WHERE {_SHOWN}"
        return replace(context.emit(stage, output, Mode.LARGE, consolidated=True), states={GROUPS: state})

    def _add_in_driver(self, change: Batch) -> Outcome:
        """Look up the stored accumulators of the groups, and add the change to them, by Arrow."""
        if change.table is None:
            raise TooMuch("the change is in files")
        stage, node, context, schema = self.stage, self.node, self.context, self.known.schema
        most = _STORED_TIMES * context.limits.most_groups(change.row_bytes)
        groups = merged_groups(change, self.known.batches, [key.name for key in node.keys], _accumulators(node), most)
        delta = output_delta(stage, node, groups, schema, context, had_output=self.had_output)
        state = Batch.in_memory(schema, _drop_unchanged(node, change.to_arrow()))
        return Outcome(Batch.in_memory(weighted(stage_schema(stage)), delta), {GROUPS: context.spill_if_large(state)})

    def _add_few(self, change: Batch) -> Outcome:
        """Add a change of few groups to them by one query."""
        if change.table is None or not change.is_small(self.context.limits):
            raise TooMuch("many groups change")
        # The batch that the query reads lives until the query has run.
        mode = Mode.SMALL if self.known.is_small(self.context.limits) else Mode.NARROW
        return self.merge(f"SELECT * FROM {self.context.batch_views.table(change)}", mode)

    def _add_many(self, change: Batch) -> Outcome:
        """Add a change of very many groups, which becomes the gain of the state."""
        context, change = self.context, self.context.spill_if_large(change)
        rows = f"SELECT * FROM {context.batch_views.table(change)}"
        merged = _merge_accumulators(self.node, rows, self.known, context, Mode.LARGE)
        columns = [f"__c{at} AS {quote(name)}" for at, (name, _) in enumerate(self.stage.columns)]
        query = _outputs(self.node, merged, had_output=self.had_output)
        shown = f"SELECT {', '.join([*columns, f'CAST({_SIGN} AS BIGINT) AS {WEIGHT}'])} FROM ({query}) WHERE {_SHOWN}"
        return replace(context.emit(self.stage, shown, Mode.LARGE), states={GROUPS: change})


def _group_sql(node: Aggregate, rows: str | None, *, unit_weights: bool) -> str | None:
    """Return a query for the accumulators of the input's delta, by group, or None if there is no delta.

    :param unit_weights: True if every weight is 1
    """
    if rows is None:
        if node.keys:
            return None
        zeros = [f"{_initial_value_sql(accumulator)} AS {accumulator.name}" for accumulator in node.accumulators]
        return f"SELECT {', '.join([*zeros, f'CAST(0 AS BIGINT) AS {WEIGHT}'])}"
    keys = [f"{key.text} AS {key.name}" for key in node.keys]
    sums = [f"{(unit_weights and a.unit_weights_text) or a.text} AS {a.name}" for a in node.accumulators]
    weight = "COUNT(*)" if unit_weights else f"COALESCE(SUM({WEIGHT}), 0)"
    group = f" GROUP BY {', '.join(str(at + 1) for at in range(len(keys)))}" if keys else ""
    return f"SELECT {', '.join([*keys, *sums, f'{weight} AS {WEIGHT}'])} FROM ({rows}){group}"


def _accumulators(node: Aggregate) -> tuple[Accumulator, ...]:
    """Return all that is stored of a group: its accumulators and the number of its rows."""
    return (*node.accumulators, Accumulator(WEIGHT, "BIGINT", Expression(WEIGHT)))


def _merge_accumulators(node: Aggregate, change: str, state: Trace, context: Context, mode: Mode) -> str:
    """Return a query for the keys of touched groups, and their accumulators as structs.

    The structs are the changes (``d``), the old values (``o``) and the new values (``n``).
    """
    keys = [key.name for key in node.keys]
    names = [accumulator.name for accumulator in _accumulators(node)]
    stored = context.batch_views.rows(state.batches, single_partition=mode is Mode.SMALL)
    if stored is None:
        structs = [
            _struct(letter, [(kept.name, kept.name if letter != "o" else _initial_value_sql(kept)) for kept in _accumulators(node)])
            for letter in "don"
        ]
        return f"SELECT {', '.join([*keys, *structs])} FROM ({change})"
    columns = ", ".join([*keys, *names])
    if mode is Mode.NARROW and keys:
        match = " AND ".join(f"s.{key} <=> t.{key}" for key in keys)
        touched = f"SELECT {', '.join(keys)} FROM ({change})"
        stored = f"(SELECT /*+ BROADCAST(t) */ s.* FROM {stored} AS s LEFT SEMI JOIN ({touched}) AS t ON {match})"
    hint = "/*+ COALESCE(1) */ " if mode is Mode.SMALL else ""
    both = (
        f"SELECT {hint}* FROM (SELECT {columns}, 1 AS {_TOUCHED} FROM ({change})"
        f" UNION ALL SELECT {columns}, 0 AS {_TOUCHED} FROM {stored})"
    )

    def total(kept: Accumulator, condition: str) -> str:
        if kept.merge is not Merge.SUM:
            return f"CAST({kept.merge.value}({kept.name}){condition} AS {kept.type})"
        return f"CAST(COALESCE(SUM({kept.name}){condition}, 0) AS {kept.type})"

    structs = [
        _struct(letter, [(kept.name, total(kept, condition)) for kept in _accumulators(node)])
        for letter, condition in (("d", f" FILTER (WHERE {_TOUCHED} = 1)"), ("o", f" FILTER (WHERE {_TOUCHED} = 0)"), ("n", ""))
    ]
    group = f" GROUP BY {', '.join(keys)}" if keys else ""
    return f"SELECT {', '.join([*keys, *structs])} FROM ({both}){group} HAVING MAX({_TOUCHED}) = 1"


def _initial_value_sql(accumulator: Accumulator) -> str:
    """Return the SQL expression of an accumulator's value before the first row."""
    return f"CAST({'0' if accumulator.merge is Merge.SUM else 'NULL'} AS {accumulator.type})"


def _struct(letter: str, fields: list[tuple[str, str]]) -> str:
    texts = ", ".join(f"'{name}', {text}" for name, text in fields)
    return f"NAMED_STRUCT({texts}) AS __{letter}"


def _outputs(node: Aggregate, merged: str, had_output: bool) -> str:
    """Return a query with one row per touched group for its new output and, with the opposite sign, one for its old output."""
    keys = [key.name for key in node.keys]
    signs = "ARRAY(-1, 1)" if had_output else "ARRAY(1)"
    versions = (
        f"SELECT {', '.join([*keys, '__d', _SIGN])}, CASE WHEN {_SIGN} < 0 THEN __o ELSE __n END AS __v"
        f" FROM ({merged}) LATERAL VIEW EXPLODE({signs}) AS {_SIGN}"
    )
    fields = [f"__v.{kept.name} AS {kept.name}" for kept in _accumulators(node)]
    rows = f"SELECT {', '.join([*keys, '__d', _SIGN, *fields])} FROM ({versions})"
    values = [f"{call.value} AS {call.name}" for call in node.calls]
    # Without keys the group always exists, even without rows.
    exists = f"{WEIGHT} > 0" if node.keys else "TRUE"
    groups = f"SELECT {', '.join([*keys, '__d', _SIGN, f'{exists} AS __exists', *values])} FROM ({rows})"
    changes = [f"__d.{kept.name} AS {kept.name}" for kept in _accumulators(node)]
    return _select_shown_sql(node, groups, [*keys, *changes, _SIGN])


def _new_output_sql(node: Aggregate, change: str) -> str:
    """Return the query of :func:`_outputs` for groups that did not exist before, so that the change is the whole group."""
    known = [*(key.name for key in node.keys), *(kept.name for kept in _accumulators(node))]
    values = [f"{call.value} AS {call.name}" for call in node.calls]
    exists = f"{WEIGHT} > 0" if node.keys else "TRUE"
    groups = f"SELECT {', '.join([*known, f'1 AS {_SIGN}', f'{exists} AS __exists', *values])} FROM ({change})"
    return _select_shown_sql(node, groups, [*known, _SIGN])


def _select_shown_sql(node: Aggregate, groups: str, columns: list[str]) -> str:
    """Return a query that adds a flag for shown groups to some columns of groups, and the output of those shown."""
    condition = f"__exists AND ({node.having})" if node.having else "__exists"
    judged = f"SELECT *, CASE WHEN {condition} THEN TRUE ELSE FALSE END AS {_SHOWN} FROM ({groups})"
    # An expression is evaluated only for groups that are shown: it may fail for others.
    items = [f"CASE WHEN {_SHOWN} THEN {item.text} END AS __c{at}" for at, item in enumerate(node.items)]
    return f"SELECT {', '.join([*columns, _SHOWN, *items])} FROM ({judged})"


def _split(stage: Stage, node: Aggregate, wide: pa.Table, state_schema: StructType) -> Outcome:
    state = Batch.in_memory(state_schema, _drop_unchanged(node, wide.filter(pc.equal(wide[_SIGN], 1))))
    shown = wide.filter(wide[_SHOWN])
    columns = [shown[f"__c{at}"] for at in range(len(stage.columns))]
    delta = pa.table([*columns, shown[_SIGN].cast(pa.int64())], names=[*(name for name, _ in stage.columns), WEIGHT])
    return Outcome(Batch.in_memory(weighted(stage_schema(stage)), delta), {GROUPS: state})


def _drop_unchanged(node: Aggregate, changes: pa.Table) -> pa.Table:
    """Return the changes of groups in which a sum changes."""
    sums = [kept.name for kept in _accumulators(node) if kept.merge is Merge.SUM]
    nothing = [pc.equal(changes[name], pa.scalar(0, changes[name].type)) for name in sums]
    return changes.filter(pc.invert(functools.reduce(pc.and_, nothing)))
