"""Recursive views: fixed points that are maintained by the rows that a step inserts and deletes.

The state of a set counts the derivations of each row. Inserted rows are followed round by round, each round joining only the newest
ones with the rest. Rows that lose a derivation are removed with all rows that depend on them, since they may have supported each
other in a cycle; rows that still have a derivation afterwards are restored. If that would remove most of the contents, the fixed
point is computed anew.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import StructType

from airflow_pipelines.engine.batch import WEIGHT, Batch, weighted
from airflow_pipelines.engine.batch_views import consolidated_sql
from airflow_pipelines.engine.errors import StepError
from airflow_pipelines.engine.execution.context import Context, Mode
from airflow_pipelines.engine.execution.outcome import Outcome, stage_schema, struct_of
from airflow_pipelines.engine.execution.relation_versions import RelationVersions
from airflow_pipelines.engine.operators.full import subtract_stored, with_contents
from airflow_pipelines.engine.operators.matching_rows import matching_rows
from airflow_pipelines.engine.operators.operator import Operator
from airflow_pipelines.engine.spark.sessions import RECURSION_LEVELS
from airflow_pipelines.engine.state import Kept, StateSchema
from airflow_pipelines.engine.trace import Trace
from airflow_pipelines.program.names import quote
from airflow_pipelines.rows.zsets import can_group, consolidate, row_keys
from airflow_pipelines.sql.plan.ir.full import Full
from airflow_pipelines.sql.plan.ir.linear import Linear
from airflow_pipelines.sql.plan.ir.recursive import Recursive
from airflow_pipelines.sql.plan.ir.stage import Stage

MAX_SECONDS = 3600.0
"""The time limit of a fixed point in seconds. One that takes longer fails its step."""
_AT = "__at"
DERIVATIONS = "derivations"
"""The name of the state of a set."""


class RecursiveOperator(Operator[Recursive]):
    """The operator that maintains the fixed point by the rows that a step inserts and deletes.

    The state of a set has the rows derived from the contents, as often as they are derived.
    """

    def state_schemas(self) -> Mapping[str, StateSchema]:
        """Return the schema of the derivations if these are counted, see :class:`Operator`."""
        counts_derivations = self.node.body is not None and self.node.distinct
        return {DERIVATIONS: StateSchema(stage_schema(self.stage))} if counts_derivations else {}

    def evaluate(self, context: Context, kept: Kept) -> Outcome:
        """Evaluate the step, see :class:`Operator`.

        :raises StepError: if the recursion does not terminate
        """
        stage, node = self.stage, self.node
        stored = kept.contents or self._empty_contents()
        rounds = _Rounds(stage.relation, context)
        if node.body is None:
            return _recompute(stage, node, context, stored, rounds)
        fixpoint = _Fixpoint(node, node.body, context, rounds, weighted(stage_schema(stage)))
        if not node.distinct:
            return Outcome(fixpoint.follow(stored), consolidated=True)
        state = kept.state(DERIVATIONS)
        if state is not None:
            outcome = fixpoint.maintain(stored, state)
            if outcome is not None:
                return outcome
        return fixpoint.anew(stored, state)


@dataclass(slots=True)
class _Rounds:
    """The counter of the rounds of one evaluation, which ends recursions that do not terminate."""

    relation: str
    context: Context
    count: int = 0
    started: float = field(default_factory=time.monotonic)

    def next(self) -> None:
        """Begin another round.

        :raises StepError: if there were too many, or the time limit is exceeded
        """
        limit = int(self.context.sessions.small.conf.get(RECURSION_LEVELS) or -1)
        view = self.relation.partition("$")[0]
        reason = None
        if 0 <= limit <= self.count:
            reason = f"{limit} rounds, the limit that {RECURSION_LEVELS} sets"
        elif time.monotonic() - self.started > MAX_SECONDS:
            reason = f"{MAX_SECONDS:.0f} seconds and {self.count} rounds"
        if reason is not None:
            message = f"The recursion has not come to an end after {reason}; a condition that bounds it may be missing"
            raise StepError(view, "RECURSION_LEVEL_LIMIT_EXCEEDED", message)
        self.count += 1


@dataclass(slots=True)
class _Sum:
    """A trace and the batches that are added to it during an evaluation."""

    base: Trace
    context: Context
    parts: list[Batch] = field(default_factory=list)

    def add(self, batch: Batch) -> None:
        """Add a batch. Small batches are merged, since each of them costs every query a little."""
        if batch.rows:
            self.parts.append(batch)
        small = [part for part in self.parts if part.table is not None]
        if len(small) > self.context.limits.merges.memory_batches // 2:
            one = _total(self.base.schema, self.context, small, [])
            self.parts = [part for part in self.parts if part.table is None] + ([one] if one.rows else [])

    @property
    def now(self) -> Trace:
        """The trace with all added batches."""
        return replace(self.base, batches=(*self.base.batches, *self.parts))

    @property
    def total(self) -> Batch:
        """All added batches, as one batch without rows that cancel out."""
        return _total(self.base.schema, self.context, self.parts, [])


@dataclass(frozen=True, slots=True)
class _Phase:
    """One phase of the change of the inputs: ``changing`` has it as their deltas, ``settled`` is the state after it."""

    changing: Mapping[str, RelationVersions]
    settled: Mapping[str, RelationVersions]

    @property
    def empty(self) -> bool:
        return not any(versions.changed for versions in self.changing.values())


@dataclass(frozen=True, slots=True)
class _Fixpoint:
    node: Recursive
    body: Linear
    context: Context
    rounds: _Rounds
    schema: StructType

    def follow(self, stored: Trace) -> Batch:
        """Return the delta of a multiset. Every row is derived from one other, so deltas add up over the rounds."""
        contents = _Sum(stored, self.context)
        # Deletions go first. Otherwise rows that are about to be deleted could be followed along new cycles forever.
        for phase in self._split_phases():
            front = Batch.empty(self.schema) if phase.empty else self._derived(phase.changing, contents, None)
            while front.rows:
                self.rounds.next()
                derived = self._derived(phase.settled, contents, front)
                contents.add(front)
                front = derived
        return contents.total

    def maintain(self, stored: Trace, state: Trace) -> Outcome | None:
        """Return the delta of a set and of its state, or None if starting anew is cheaper."""
        contents, derivations = _Sum(stored, self.context), _Sum(state, self.context)
        losing, gaining = self._split_phases()
        taken: list[Batch] = []
        if not losing.empty:
            derived = self._derived(losing.changing, contents, None)
            while derived.rows:
                derivations.add(derived)
                front = self._find_losers(derived, contents)
                if front is None or sum(batch.rows for batch in (front, *taken)) > max(
                    self.context.limits.few_losses, stored.rows // 2
                ):
                    return None
                if not front.rows:
                    break
                taken.append(front)
                self.rounds.next()
                derived = self._derived(losing.settled, contents, front)
                contents.add(front)
        gained = Batch.empty(self.schema) if gaining.empty else self._derived(gaining.changing, contents, None)
        derivations.add(gained)
        self._grow(gaining.settled, contents, derivations, self._find_restored(taken, derivations, gained, contents))
        return Outcome(contents.total, {DERIVATIONS: derivations.total}, consolidated=True)

    def anew(self, stored: Trace, state: Trace | None) -> Outcome:
        """Compute the fixed point from nothing and subtract the old one; return the same as :meth:`maintain`."""
        nothing = replace(stored, batches=())
        contents, derivations = _Sum(nothing, self.context), _Sum(nothing, self.context)
        inputs = {name: self.context.relations[name].after for name in self.node.inputs}
        all_new = {name: RelationVersions(replace(trace, batches=()), trace.batches) for name, trace in inputs.items()}
        gained = self._derived(all_new, contents, None)
        derivations.add(gained)
        settled = {name: RelationVersions(trace) for name, trace in inputs.items()}
        self._grow(settled, contents, derivations, self._find_newcomers(gained, contents))
        old = state.batches if state is not None else ()
        delta = _total(self.schema, self.context, contents.parts, stored.batches)
        derived = _total(self.schema, self.context, derivations.parts, old)
        return Outcome(delta, {DERIVATIONS: derived}, consolidated=True)

    def _grow(self, inputs: Mapping[str, RelationVersions], contents: _Sum, derivations: _Sum, front: Batch) -> None:
        """Add ``front`` and all that follows from it."""
        while front.rows:
            self.rounds.next()
            derived = self._derived(inputs, contents, front)
            contents.add(front)
            derivations.add(derived)
            front = self._find_newcomers(derived, contents)

    def _derived(self, inputs: Mapping[str, RelationVersions], contents: _Sum, front: Batch | None) -> Batch:
        """Return the derivations that are gained or lost when the inputs change, or when ``front`` is added to ``contents``."""
        own = RelationVersions(contents.now, (front,) if front is not None else ())
        context = replace(self.context, relations={**inputs, self.node.relation: own})
        mode = context.mode(context.find_changed(), self.body.rereads)
        query = context.printer(mode).delta(self.body, context.find_changed())
        if query is None:
            return Batch.empty(self.schema)
        return context.run(consolidated_sql(Trace(self.schema), f"({query})"), self.schema, mode, may_grow=True)

    def _find_newcomers(self, derived: Batch, contents: _Sum) -> Batch:
        """Return the newly derived rows that the contents do not have yet, each with weight 1."""
        if derived.table is None:
            return self._find_newcomers_in_files(derived, contents)
        gained = derived.table.filter(pc.greater(derived.table[WEIGHT], 0))
        known = matching_rows(contents.now, self._plain(gained), self._names, self.context)
        return self._batch(_subtract_rows(self._plain(gained), self._plain(known)), 1)

    def _find_newcomers_in_files(self, derived: Batch, contents: _Sum) -> Batch:
        names = ", ".join(map(quote, self._names))
        query = f"SELECT {names}, CAST(1 AS BIGINT) AS {WEIGHT} FROM {self.context.batch_views.table(derived)} AS s"
        rows = self.context.batch_views.rows(contents.now.batches)
        if rows is not None:
            match = " AND ".join(f"s.{quote(name)} <=> t.{quote(name)}" for name in self._names)
            query += f" LEFT ANTI JOIN ({consolidated_sql(contents.now, rows)}) AS t ON {match}"
        return self.context.run(f"{query} WHERE s.{WEIGHT} > 0", self.schema, Mode.LARGE)

    def _find_losers(self, derived: Batch, contents: _Sum) -> Batch | None:
        """Return the rows of the contents that lost a derivation, each with weight -1, or None if they are many."""
        if derived.table is None:
            return None
        lost = derived.table.filter(pc.less(derived.table[WEIGHT], 0))
        return self._batch(self._plain(matching_rows(contents.now, self._plain(lost), self._names, self.context)), -1)

    def _find_restored(self, taken: list[Batch], derivations: _Sum, gained: Batch, contents: _Sum) -> Batch:
        """Return the rows to start growing from: removed rows that are still derived, and rows that the inputs gained."""
        new = self._find_newcomers(gained, contents)
        if not taken:
            return new
        out = pa.concat_tables([self._plain(batch.table) for batch in taken])
        derived = matching_rows(derivations.now, out, self._names, self.context)
        still = self._batch(self._plain(derived.filter(pc.greater(derived[WEIGHT], 0))), 1)
        if not still.rows or not new.rows:
            return new if new.rows else still
        if new.table is not None and still.table is not None:
            both = _subtract_rows(self._plain(new.table), self._plain(still.table))
            return self.context.spill_if_large(self._batch(pa.concat_tables([both, self._plain(still.table)]), 1))
        names = ", ".join(map(quote, self._names))
        query = f"SELECT DISTINCT {names}, CAST(1 AS BIGINT) AS {WEIGHT} FROM {self.context.batch_views.rows((new, still))}"
        return self.context.run(query, self.schema, Mode.LARGE)

    def _split_phases(self) -> tuple[_Phase, _Phase]:
        """Return the step's change of the inputs as two phases, the deletions and then the insertions."""
        before = {name: self.context.relations[name].before for name in self.node.inputs}
        lost: dict[str, tuple[Batch, ...]] = {}
        gained: dict[str, tuple[Batch, ...]] = {}
        for name, trace in before.items():
            lost[name], gained[name] = _split_by_sign(trace.schema, self.context.relations[name].delta, self.context)
        middle = {name: replace(trace, batches=(*trace.batches, *lost[name])) for name, trace in before.items()}
        after = {name: replace(trace, batches=(*trace.batches, *gained[name])) for name, trace in middle.items()}
        losing = {name: RelationVersions(trace, lost[name]) for name, trace in before.items()}
        gaining = {name: RelationVersions(trace, gained[name]) for name, trace in middle.items()}
        return (
            _Phase(losing, {name: RelationVersions(trace) for name, trace in middle.items()}),
            _Phase(gaining, {name: RelationVersions(trace) for name, trace in after.items()}),
        )

    @property
    def _names(self) -> list[str]:
        return [field.name for field in self.schema.fields[:-1]]

    def _plain(self, table: pa.Table) -> pa.Table:
        return table.select(self._names)

    def _batch(self, rows: pa.Table, weight: int) -> Batch:
        return Batch.in_memory(self.schema, rows.append_column(WEIGHT, pa.array([weight] * rows.num_rows, pa.int64())))


def _recompute(stage: Stage, node: Recursive, context: Context, stored: Trace, rounds: _Rounds) -> Outcome:
    """Return the delta by evaluating the whole query repeatedly, each time over its last answer, until that stops growing."""
    schema = weighted(struct_of(node.columns))
    names = ", ".join(quote(name) for name, _ in node.columns)
    reads = (*node.inputs, node.relation)
    contents = Batch.empty(schema)
    while True:
        rounds.next()
        inner = _replace_own(context, node, schema, contents)
        mode = inner.mode(frozenset(), frozenset(reads))
        answer = with_contents(Full(node.query, reads, None), inner, mode is Mode.SMALL)
        query = f"SELECT DISTINCT *, CAST(1 AS BIGINT) AS {WEIGHT} FROM (SELECT * FROM ({answer}) AS q({names}))"
        grown = inner.run(query, schema, mode, may_grow=True)
        if grown.rows == contents.rows:
            break
        contents = grown
    inner = _replace_own(context, node, schema, contents)
    result = node.result or f"SELECT {names} FROM {quote(node.relation)}"
    mode = inner.mode(frozenset(), frozenset({node.relation}), stored)
    return subtract_stored(
        stage, with_contents(Full(result, (node.relation,), None), inner, mode is Mode.SMALL), inner, mode, stored
    )


def _replace_own(context: Context, node: Recursive, schema: StructType, contents: Batch) -> Context:
    own = RelationVersions(Trace(schema, (contents,) if contents.rows else ()))
    return replace(context, relations={**{name: context.relations[name] for name in node.inputs}, node.relation: own})


def _split_by_sign(schema: StructType, delta: tuple[Batch, ...], context: Context) -> tuple[tuple[Batch, ...], tuple[Batch, ...]]:
    """Return the deletions and the insertions of a delta, each as batches without rows that cancel out."""
    if all(batch.insert_only for batch in delta):
        return (), delta
    if all(batch.table is not None for batch in delta):
        total = consolidate(pa.concat_tables([batch.table for batch in delta]))
        parts = [
            context.spill_if_large(Batch.in_memory(schema, total.filter(keep(total[WEIGHT], 0)))) for keep in (pc.less, pc.greater)
        ]
    else:
        rows = str(context.batch_views.rows(delta))
        parts = [context.run(consolidated_sql(Trace(schema), rows, keep), schema, Mode.LARGE) for keep in ("< 0", "> 0")]
    lost, gained = (((part,) if part.rows else ()) for part in parts)
    return lost, gained


def _total(schema: StructType, context: Context, plus: list[Batch], minus: tuple[Batch, ...] | list[Batch]) -> Batch:
    """Return the sum of batches minus the sum of others, as one batch without rows that cancel out."""
    if not plus and not minus:
        return Batch.empty(schema)
    if len(plus) == 1 and not minus:
        return plus[0]
    if all(batch.table is not None for batch in (*plus, *minus)):
        tables = [batch.table for batch in plus] + [_negate(batch.table) for batch in minus]
        table = pa.concat_tables(tables)
        alone = not minus and all(batch.insert_only for batch in plus) and not can_group(table.drop_columns([WEIGHT]).schema)
        return context.spill_if_large(Batch.in_memory(schema, table if alone else consolidate(table)))
    names = ", ".join(quote(field.name) for field in schema.fields[:-1])
    parts = [f"SELECT {names}, {WEIGHT} FROM {context.batch_views.rows(tuple(plus))}"] if plus else []
    parts += [f"SELECT {names}, -{WEIGHT} AS {WEIGHT} FROM {context.batch_views.rows(tuple(minus))}"] if minus else []
    return context.run(consolidated_sql(Trace(schema), f"({' UNION ALL '.join(parts)})"), schema, Mode.LARGE)


def _negate(table: pa.Table) -> pa.Table:
    return table.set_column(table.num_columns - 1, WEIGHT, pc.negate(table[WEIGHT]))


def _subtract_rows(rows: pa.Table, others: pa.Table) -> pa.Table:
    """Return the rows that are not among ``others``; both have distinct rows."""
    if not others.num_rows or not rows.num_rows:
        return rows
    if can_group(rows.schema):
        # Unlike pyarrow's joins, grouping treats NULL as equal to NULL.
        both = pa.concat_tables([_number_rows(rows, 0), _number_rows(others.cast(rows.schema), rows.num_rows)])
        groups = both.group_by(rows.column_names, use_threads=False).aggregate([(_AT, "min"), (_AT, "count")])
        alone = pc.and_(pc.equal(groups[f"{_AT}_count"], 1), pc.less(groups[f"{_AT}_min"], rows.num_rows))
        return rows.take(groups.filter(alone)[f"{_AT}_min"])
    known = set(row_keys(others))
    return rows.filter(pa.array([key not in known for key in row_keys(rows)], pa.bool_()))


def _number_rows(rows: pa.Table, start: int) -> pa.Table:
    return rows.append_column(_AT, pa.array(range(start, start + rows.num_rows), pa.int64()))
