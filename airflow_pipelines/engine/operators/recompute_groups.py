"""Aggregates that do not follow from accumulators: the groups that a delta touches are recomputed from the input's contents."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, replace

from airflow_pipelines.engine.batch import WEIGHT, Batch, weighted
from airflow_pipelines.engine.batch_views import consolidated_sql, empty_columns_sql, expanded_sql
from airflow_pipelines.engine.execution.context import Context, Mode
from airflow_pipelines.engine.execution.outcome import TOUCHES_MOST, Outcome, stage_schema, struct_of
from airflow_pipelines.engine.execution.ways import Declined, first_accepted
from airflow_pipelines.engine.operators.lookup_join.matching import distinct_rows, matching_batch, wanted_of
from airflow_pipelines.engine.operators.operator import Operator
from airflow_pipelines.engine.operators.touched_group_totals import change_of_groups
from airflow_pipelines.engine.spark.failures import with_texts_of_names
from airflow_pipelines.engine.state import Kept, StateSchema
from airflow_pipelines.engine.trace import Trace
from airflow_pipelines.program.names import quote
from airflow_pipelines.sql.plan.ir.aggregate import Aggregate
from airflow_pipelines.sql.plan.ir.expression import Expression
from airflow_pipelines.sql.plan.ir.linear import Item
from airflow_pipelines.sql.plan.ir.stage import Stage
from airflow_pipelines.sql.plan.ir.to_sql import groups_over
from airflow_pipelines.sql.plan.ir.version import Version

GROUPS = "groups"
"""The name of the state."""


class RecomputeGroupsOperator(Operator[Aggregate]):
    """The operator that recomputes the groups that a delta touches from the input's contents."""

    def state_schemas(self) -> Mapping[str, StateSchema]:
        """Return the schema of the output rows with the keys of their groups."""
        columns = [(key.name, kind) for key, kind in zip(self.node.keys, self.node.key_types, strict=True)]
        columns += [(f"__o{at}", kind) for at, (_, kind) in enumerate(self.stage.columns)]
        return {GROUPS: StateSchema(struct_of(tuple(columns)))}

    def evaluate(self, context: Context, kept: Kept) -> Outcome:
        """Evaluate the step, see :class:`Operator`."""
        state = kept.state(GROUPS)
        known = self.empty_states()[GROUPS] if state is None else state
        return _evaluate(self.stage, self.node, context, known, is_first=state is None)

    def in_query_terms(self, expression: str) -> str:
        """Return the expression with the texts of the input's columns, see :class:`Operator`."""
        return with_texts_of_names(expression, {item.name: item.text for item in self.node.input.items})


def _evaluate(stage: Stage, node: Aggregate, context: Context, known: Trace, *, is_first: bool) -> Outcome:
    """Return the delta of an aggregate and of its state: new output rows of the touched groups less the stored ones."""
    work = _Work(stage, node, context, known, is_first)
    return first_accepted(work.total_in_driver, work.look_up_groups, work.compare_all)


@dataclass(frozen=True)
class _Work:
    """The recomputation of the groups that one step touches.

    :param known: the output rows before the step, with the keys of their groups
    :param is_first: True if the stage was not evaluated before
    """

    stage: Stage
    node: Aggregate
    context: Context
    known: Trace
    is_first: bool

    def total_in_driver(self) -> Outcome:
        """Compute the groups by Arrow."""
        groups = change_of_groups(self.stage, self.node, self.known, self.context)
        return replace(_output(self.stage, groups, self.context), states={GROUPS: groups})

    def look_up_groups(self) -> Outcome:
        """Compute the groups by a query over rows that are looked up, or found by a scan for their keys."""
        touched, context = self._touched, self.context
        if touched is None or self.mode is Mode.LARGE:
            raise Declined("all groups are touched, or very many")
        if self.mode is Mode.SMALL and context.is_tiny(self.stage.reads) and context.is_few(self.known.batches):
            raise Declined("everything is read at once")
        keys = _collect_keys(self.node, touched, context, self.mode)
        touched = f"SELECT {', '.join(key.name for key in self.node.keys)} FROM {context.batch_views.table(keys)}"
        return first_accepted(
            lambda: self._compute_near(keys, touched),
            lambda: self._compute(self._contents(), touched, self.known, self.mode),
        )

    def compare_all(self) -> Outcome:
        """Compute the groups by a query over all rows."""
        # Without keys there is one group even without rows, which the first evaluation outputs.
        if self._change is None and (self.node.keys or not self.is_first):
            return Outcome(Batch.empty(weighted(stage_schema(self.stage))))
        mode = Mode.SMALL if self.mode is Mode.SMALL else Mode.LARGE
        outcome = self._compute(self._contents(), self._touched, self.known, mode)
        return replace(outcome, strategy="all groups", reason=TOUCHES_MOST) if self._touches_most else outcome

    @functools.cached_property
    def mode(self) -> Mode:
        """The mode in which the stage's relations are read."""
        reads = self.stage.reads
        return self.context.mode(reads & self.context.find_changed(), reads, self.known)

    @functools.cached_property
    def _touches_most(self) -> bool:
        return not self._is_everything and self.mode is Mode.LARGE and self.context.touches_most(self.stage.reads)

    @property
    def _is_everything(self) -> bool:
        """True if the delta has all contents, as in a first load, so that it touches every group."""
        return not self.known.batches and all(not self.context.relations[name].before.batches for name in self.stage.reads)

    @functools.cached_property
    def _change(self) -> str | None:
        """The query for the delta of the input; None for no delta."""
        return self.context.printer(self.mode).delta(self.node.input, self.context.find_changed())

    @functools.cached_property
    def _touched(self) -> str | None:
        """The query for the keys of the touched groups; None for all groups."""
        if self._change is None or not self.node.keys or self._is_everything or self._touches_most:
            return None
        return _touched_sql(self.node, self._change)

    def _contents(self) -> str | None:
        return self.context.printer(self.mode).contents(self.node.input, Version.AFTER)

    def _compute_near(self, keys: Batch, touched: str) -> Outcome:
        """Compute the groups from their rows, which are looked up."""
        near = _look_up_near(self.node, keys, self.known, self.context)
        return self._compute(near.contents, touched, near.state, Mode.SMALL)

    def _compute(self, contents: str | None, touched: str | None, known: Trace, mode: Mode) -> Outcome:
        """Compute the groups from some contents, and subtract their known output rows."""
        context = self.context
        insert_only = all(context.relations[name].after.insert_only for name in self.stage.reads)
        hint = "/*+ BROADCAST(t) */ " if mode is Mode.NARROW else ""
        query = _fresh_sql(self.node, contents, touched, insert_only, hint)
        small = mode is Mode.SMALL
        stored = context.batch_views.rows(known.batches, single_partition=small)
        if stored is not None:
            if touched is not None:
                stored = f"(SELECT {hint}s.* FROM {stored} AS s LEFT SEMI JOIN ({touched}) AS t ON {_match(self.node)})"
            columns = ", ".join(f"`{name}`" for name in known.keys)
            coalesce = "/*+ COALESCE(1) */ " if small else ""
            both = f"(SELECT {coalesce}* FROM (({query}) UNION ALL SELECT {columns}, -{WEIGHT} AS {WEIGHT} FROM {stored}))"
            query = consolidated_sql(known, both)
        # Without touched keys the result is as large as the state.
        batch = context.run(query, known.schema, mode)
        return replace(_output(self.stage, batch, context), states={GROUPS: batch})


@dataclass(frozen=True, slots=True)
class _Near:
    """The rows of the touched groups in memory, of the input (a query, None for no rows) and of the state; perhaps with others."""

    contents: str | None
    state: Trace
    batch: Batch


def _look_up_near(node: Aggregate, touched: Batch, known: Trace, context: Context) -> _Near:
    """Return the rows of the touched groups in memory.

    :raises Declined: if a scan is needed to find them
    """
    values = touched.to_arrow()
    wanted = wanted_of(node.lookup, node.key_types, [values[key.name] for key in node.keys], context.relations)
    if node.lookup is None or wanted is None:
        raise Declined("no part of the key can be looked up")
    after = context.relations[wanted.relation].after
    batch = matching_batch(after.batches, after.schema, wanted.rows, context.limits, node.lookup.reads)
    groups = distinct_rows({key.name: values[key.name] for key in node.keys})
    stored = matching_batch(known.batches, known.schema, groups, context.limits)
    contents = context.over(wanted.relation, batch).contents(node.input, Version.AFTER) if batch.rows else None
    return _Near(contents, replace(known, batches=(stored,) if stored.rows else ()), batch)


def _collect_keys(node: Aggregate, touched: str, context: Context, mode: Mode) -> Batch:
    """Return the touched groups' keys as a batch in memory.

    :raises TooMuch: if they are too many for that
    """
    table = context.collect_bounded(f"SELECT *, CAST(1 AS BIGINT) AS {WEIGHT} FROM ({touched})", mode)
    keys = tuple((key.name, kind) for key, kind in zip(node.keys, node.key_types, strict=True))
    return Batch.in_memory(weighted(struct_of(keys)), table)


def _touched_sql(node: Aggregate, change: str) -> str:
    keys = ", ".join(f"{key.text} AS {key.name}" for key in node.keys)
    return f"SELECT DISTINCT {keys} FROM ({change})"


def _match(node: Aggregate) -> str:
    return " AND ".join(f"s.{key.name} <=> t.{key.name}" for key in node.keys)


def _fresh_sql(node: Aggregate, contents: str | None, touched: str | None, insert_only: bool, hint: str) -> str:
    """Return a query for the keys and current output rows of the touched groups, each with weight 1."""
    items = [f"{item.text} AS __o{at}" for at, item in enumerate(node.items)]
    keys = [key.name for key in node.keys]
    condition = f" WHERE {node.having}" if node.having else ""
    inputs = [item.name for item in node.input.items]
    if contents is None:
        contents = empty_columns_sql([*zip(inputs, node.input_types, strict=True), (WEIGHT, "BIGINT")])
    rows = f"SELECT {', '.join([*(f'{key.text} AS {key.name}' for key in node.keys), *inputs, WEIGHT])} FROM ({contents})"
    if touched is not None:
        rows = f"SELECT {hint}s.* FROM ({rows}) AS s LEFT SEMI JOIN ({touched}) AS t ON {_match(node)}"
    if not insert_only:
        kinds = zip([*keys, *inputs], [*node.key_types, *node.input_types], strict=True)
        rows = expanded_sql(Trace(weighted(struct_of(tuple(kinds)))), f"({rows})", insert_only=False)
    by_name = tuple(Item(key.name, Expression(key.name)) for key in node.keys)
    groups = groups_over(_with_keys(node, by_name), rows)
    return f"SELECT {', '.join([*keys, *items])}, CAST(1 AS BIGINT) AS {WEIGHT} FROM ({groups}){condition}"


def _with_keys(node: Aggregate, keys: tuple[Item, ...]) -> Aggregate:
    return replace(node, keys=keys)


def _output(stage: Stage, batch: Batch, context: Context) -> Outcome:
    """Return the relation's delta: the state's delta without the keys."""
    names = [name for name, _ in stage.columns]
    schema = weighted(stage_schema(stage))
    if batch.table is not None:
        table = batch.table.select([f"__o{at}" for at in range(len(names))] + [WEIGHT]).rename_columns([*names, WEIGHT])
        return Outcome(Batch.in_memory(schema, table))
    columns = ", ".join(f"__o{at} AS {quote(name)}" for at, name in enumerate(names))
    return context.emit(
        stage, f"SELECT {columns}, {WEIGHT} FROM {context.batch_views.table(batch)}", Mode.LARGE, unit_weights=batch.insert_only
    )
