"""Queries that are decomposable by key: they are evaluated for the keys that a delta affects, before and after, and subtracted."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.sql.types import StructType

from airflow_pipelines.engine.batch import WEIGHT, Batch, weighted
from airflow_pipelines.engine.batch_views import consolidated_sql, empty_sql, expanded_sql
from airflow_pipelines.engine.execution.context import Context, Mode
from airflow_pipelines.engine.execution.outcome import TOUCHES_MOST, Outcome, stage_schema, struct_of
from airflow_pipelines.engine.execution.ways import Declined, TooMuch, first_accepted
from airflow_pipelines.engine.operators.full import subtract_stored
from airflow_pipelines.engine.operators.lookup_join.fetch import delta_of
from airflow_pipelines.engine.operators.lookup_join.matching import matching_batch, wanted_of
from airflow_pipelines.engine.operators.operator import Operator
from airflow_pipelines.engine.operators.session_changes import change_of_sessions
from airflow_pipelines.engine.state import Kept
from airflow_pipelines.engine.trace import Trace
from airflow_pipelines.program.names import quote
from airflow_pipelines.sql.plan.ir.affected_keys import AffectedKeys, KeyedSource
from airflow_pipelines.sql.plan.ir.linear import Scan
from airflow_pipelines.sql.plan.ir.stage import Stage
from airflow_pipelines.sql.plan.ir.version import Version

_KEY = "__touched"


class AffectedKeysOperator(Operator[AffectedKeys]):
    """The operator that evaluates the query for the keys that a delta affects, before and after it."""

    def evaluate(self, context: Context, kept: Kept) -> Outcome:
        """Evaluate the step, see :class:`Operator`."""
        return _evaluate(self.stage, self.node, context, kept.contents)


def _evaluate(stage: Stage, node: AffectedKeys, context: Context, stored: Trace | None) -> Outcome:
    """Return the delta of a stage.

    :param stored: the stage's own contents before the step, if they are kept
    """
    if not node.key_types:
        return _recompute(stage, node, context, stored if stored is not None else Trace(weighted(stage_schema(stage))))
    return first_accepted(
        lambda: _change_sessions(stage, node, context),
        lambda: _compute_every_key(stage, node, context, stored),
        lambda: _fetch_and_compute(stage, node, context),
        lambda: _touched_keys(stage, node, context),
    )


def _change_sessions(stage: Stage, node: AffectedKeys, context: Context) -> Outcome:
    """Return the delta of totals by session, computed in the driver."""
    if node.session_totals is None or node.remembered:
        raise Declined("not totals by session")
    change = change_of_sessions(node.sources[0].node, node.session_totals, weighted(stage_schema(stage)), context)
    return Outcome(context.spill_if_large(change), consolidated=True)


def _compute_every_key(stage: Stage, node: AffectedKeys, context: Context, stored: Trace | None) -> Outcome:
    """Return the delta for all keys, where the step affects all or most of them."""
    changed = context.find_changed()
    mode = context.mode(stage.reads & changed, stage.reads)
    if all(not context.relations[name].before.batches for name in stage.reads):
        return _first(stage, node, context, mode)
    if any(not source.keys and source.node.reads & changed for source in node.sources):
        every = _every_key(stage, node, context, mode, None if stage.reads & context.incomplete else stored)
        return replace(every, strategy=f"{node.shape.value} by recomputing", reason=node.reason)
    if mode is Mode.LARGE and context.touches_most(stage.reads):
        every = _every_key(stage, node, context, mode, stored)
        return replace(every, strategy=f"{node.shape.value} by recomputing", reason=TOUCHES_MOST)
    raise Declined("few keys are affected")


def _recompute(stage: Stage, node: AffectedKeys, context: Context, stored: Trace) -> Outcome:
    """Return the delta by recomputing the whole answer and subtracting the stored one."""
    mode = context.mode(frozenset(), stage.reads, stored)
    return subtract_stored(stage, _answer(node, _contents(node, context, mode, Version.AFTER)), context, mode, stored)


def _first(stage: Stage, node: AffectedKeys, context: Context, mode: Mode) -> Outcome:
    """Return the answer as the delta, because there were no rows before."""
    mode = Mode.SMALL if mode is Mode.SMALL else Mode.LARGE
    query = _weighted_sql(_answer(node, _contents(node, context, mode, Version.AFTER)))
    return context.emit(stage, query, mode, may_grow=True, consolidated=True)


def _every_key(stage: Stage, node: AffectedKeys, context: Context, mode: Mode, stored: Trace | None) -> Outcome:
    """Return the delta for all keys, because a source without keys has changed, or most keys are affected."""
    if stored is not None:
        return _recompute(stage, node, context, stored)
    mode = Mode.SMALL if mode is Mode.SMALL else Mode.LARGE
    now, before = (_answer(node, _contents(node, context, mode, version)) for version in (Version.AFTER, Version.BEFORE))
    return _subtract(stage, now, _weighted_sql(before), context, mode)


def _touched_keys(stage: Stage, node: AffectedKeys, context: Context) -> Outcome:
    """Return the delta for the touched keys by reading the sources' rows of these keys wherever they are."""
    changed = context.find_changed()
    mode = Mode.SMALL if context.mode(stage.reads & changed, stage.reads) is Mode.SMALL else Mode.LARGE
    printer = context.printer(mode)
    deltas = {source.alias: printer.delta(source.node, changed) for source in node.sources if source.keys}
    touched = _touched_sql(node, {alias: delta for alias, delta in deltas.items() if delta is not None}, context, mode)
    if touched is None:
        return Outcome(Batch.empty(weighted(stage_schema(stage))), consolidated=True)
    keys = None
    if mode is Mode.LARGE:
        # Written once, because every source is compared with them twice. The batch lives until the query has run.
        distinct = f"SELECT DISTINCT *, CAST(1 AS BIGINT) AS {WEIGHT} FROM ({touched})"
        keys = context.run(distinct, _key_schema(node), Mode.LARGE)
        touched = f"SELECT * FROM {context.batch_views.table(keys)}"
    now = _answer(node, _contents(node, context, mode, Version.AFTER, touched=touched))
    if node.remembered:
        own = _make_own_source(stage, node)
        contents = context.printer(mode).contents(own.node, Version.BEFORE)
        was = None if contents is None else _restrict_sql(node, own, contents, touched, broadcast=False)
        return _subtract(stage, now, was, context, mode)
    before = _answer(node, _contents(node, context, mode, Version.BEFORE, touched=touched))
    return _subtract(stage, now, _weighted_sql(before), context, mode)


def _fetch_and_compute(stage: Stage, node: AffectedKeys, context: Context) -> Outcome:
    """Fetch the rows of the touched keys from large sources, one scan each, and compute both versions in memory.

    :raises Declined: if the sources are tiny, or this turns out to be too much for memory
    """
    mode = context.mode(stage.reads & context.find_changed(), stage.reads)
    if mode is Mode.LARGE or (mode is Mode.SMALL and context.is_tiny(stage.reads)):
        raise Declined("nothing has to be fetched, or too much")
    printer = context.printer(Mode.SMALL)
    sources = (*node.sources, _make_own_source(stage, node)) if node.remembered else node.sources
    large = [source for source in sources if context.mode(frozenset(), source.node.reads) is not Mode.SMALL]
    if any(not source.keys for source in large):
        raise Declined("a large source has no keys")
    schemas = {source.alias: weighted(context.schema(source.node)) for source in node.sources}
    deltas = _small_deltas(node, schemas, context)
    touched = _touched_sql(node, deltas, context, Mode.SMALL)
    if touched is None:
        return Outcome(Batch.empty(weighted(stage_schema(stage))), consolidated=True)
    key_rows = context.collect_bounded(f"SELECT DISTINCT *, CAST(1 AS BIGINT) AS {WEIGHT} FROM ({touched})", Mode.SMALL)
    keys = Batch.in_memory(_key_schema(node), key_rows)
    touched = f"SELECT * FROM {context.batch_views.table(keys)}"
    fetched = _fetch_sources(node, sources, large, key_rows, touched, context)
    now = _answer(node, _near_contents(node, fetched, deltas, touched, context))
    if not node.remembered:
        before = _answer(node, _near_contents(node, fetched, {}, touched, context))
        return _subtract(stage, now, _weighted_sql(before), context, Mode.SMALL)
    own = sources[-1]
    was = fetched[own.alias].text if own.alias in fetched else printer.contents(own.node, Version.BEFORE)
    restricted = None if was is None else _restrict_sql(node, own, was, touched, broadcast=False)
    return _subtract(stage, now, restricted, context, Mode.SMALL)


def _fetch_sources(
    node: AffectedKeys, sources: Sequence[KeyedSource], large: Sequence[KeyedSource], keys: pa.Table, touched: str, context: Context
) -> dict[str, _Fetched]:
    """Return the earlier rows of the touched keys, by alias, of sources better fetched than read whole.

    :raises TooMuch: if they are too many
    """
    fetched = {
        source.alias: first_accepted(
            functools.partial(_look_up, node, source, keys, context), functools.partial(_scan, node, source, touched, context)
        )
        for source in large
    }
    for source in sources:
        if source.keys and source.alias not in fetched and not context.is_tiny(source.node.reads):
            with contextlib.suppress(Declined):
                fetched[source.alias] = _look_up(node, source, keys, context)
    return fetched


def _near_contents(
    node: AffectedKeys, fetched: Mapping[str, _Fetched], deltas: Mapping[str, str], touched: str, context: Context
) -> dict[str, str]:
    """Return queries for the plain rows of the touched keys, by alias.

    These are the earlier rows, and those of ``deltas``, which has the deltas of all sources or none.
    """
    version = Version.AFTER if deltas else Version.BEFORE
    others = [source for source in node.sources if source.alias not in fetched]
    rows = _contents(node, context, Mode.SMALL, version, touched=touched, sources=others)
    for source in node.sources:
        stored = fetched.get(source.alias)
        if stored is None:
            continue
        schema = weighted(context.schema(source.node))
        parts = [stored.text] if stored.text is not None else []
        parts += [deltas[source.alias]] if source.alias in deltas else []
        weights = context.printer(Mode.SMALL).union(parts) or empty_sql(schema)
        insert_only = len(parts) == 0 or (len(parts) == 1 and stored.text is not None and stored.insert_only)
        rows[source.alias] = expanded_sql(Trace(schema), f"({weights})", insert_only=insert_only)
    return {source.alias: rows[source.alias] for source in node.sources}


def _small_deltas(node: AffectedKeys, schemas: Mapping[str, StructType], context: Context) -> dict[str, str]:
    """Return queries over memory for the sources' deltas, by alias.

    :raises TooMuch: if one is too large for memory
    """
    deltas = {}
    for source in node.sources:
        delta = delta_of(source.node, context)
        query = delta.query
        if query is not None and delta.mode is not Mode.SMALL:
            if delta.mode is Mode.LARGE:
                raise TooMuch("a large delta")
            table = context.collect_bounded(query, delta.mode)
            batch = context.pinned[query] = Batch.in_memory(schemas[source.alias], table)
            query = f"SELECT * FROM {context.batch_views.table(batch)}"
        if query is not None:
            deltas[source.alias] = query
    return deltas


@dataclass(frozen=True, slots=True)
class _Fetched:
    """A query for rows in memory; None for no rows.

    :param text: the query
    :param insert_only: True if each row has the weight 1
    :param batch: the rows; the batch must live as long as the query is used
    """

    text: str | None
    insert_only: bool
    batch: Batch


def _look_up(node: AffectedKeys, source: KeyedSource, keys: pa.Table, context: Context) -> _Fetched:
    """Return the earlier rows of a source for the touched keys, perhaps with others.

    :raises Declined: if a scan is needed to find them
    """
    values = [keys[f"{_KEY}{at}"] for at in range(len(source.keys))]
    wanted = wanted_of(source.lookup, node.key_types, values, context.relations)
    if source.lookup is None or wanted is None:
        raise Declined("no part of the key can be looked up")
    before = context.relations[wanted.relation].before
    batch = matching_batch(before.batches, before.schema, wanted.rows, context.limits, source.lookup.reads)
    if not batch.rows:
        return _Fetched(None, True, batch)
    context.pinned[f"looked up {batch.number}"] = batch
    return _Fetched(context.over(wanted.relation, batch).contents(source.node, Version.BEFORE), batch.insert_only, batch)


def _scan(node: AffectedKeys, source: KeyedSource, touched: str, context: Context) -> _Fetched:
    """Return the earlier rows of a source for the touched keys.

    :raises TooMuch: if they are too many for memory
    """
    schema = weighted(context.schema(source.node))
    contents = context.printer(Mode.NARROW).contents(source.node, Version.BEFORE)
    if contents is None:
        return _Fetched(None, True, Batch.empty(schema))
    rows = _restrict_sql(node, source, contents, touched, broadcast=True)
    if not all(context.relations[name].before.insert_only for name in source.node.reads):
        rows = consolidated_sql(Trace(schema), f"({rows})")
    batch = Batch.in_memory(schema, context.collect_bounded(rows, Mode.NARROW))
    return _Fetched(f"SELECT * FROM {context.batch_views.table(batch)}" if batch.rows else None, batch.insert_only, batch)


def _key_schema(node: AffectedKeys) -> StructType:
    return weighted(struct_of(tuple((f"{_KEY}{at}", kind) for at, kind in enumerate(node.key_types))))


def _touched_sql(node: AffectedKeys, deltas: Mapping[str, str], context: Context, mode: Mode) -> str | None:
    """Return the keys of the rows in the sources' deltas, each at least once."""
    parts = []
    for source in node.sources:
        if source.alias in deltas and source.keys:
            keys = _keys(node, source)
            columns = ", ".join(f"{key} AS {_KEY}{at}" for at, key in enumerate(keys))
            parts.append(f"SELECT {columns} FROM ({deltas[source.alias]})")
    return context.printer(mode).union(parts)


def _keys(node: AffectedKeys, source: KeyedSource) -> list[str]:
    return [f"CAST({key} AS {kind})" for key, kind in zip(source.keys, node.key_types, strict=True)]


def _restrict_sql(node: AffectedKeys, source: KeyedSource, rows: str, touched: str, *, broadcast: bool) -> str:
    """Return a query for the rows with touched keys."""
    hint = "/*+ BROADCAST(t) */ " if broadcast else ""
    match = " AND ".join(f"{key} <=> t.{_KEY}{at}" for at, key in enumerate(_keys(node, source)))
    return f"SELECT {hint}s.* FROM ({rows}) AS s LEFT SEMI JOIN ({touched}) AS t ON {match}"


def _contents(
    node: AffectedKeys,
    context: Context,
    mode: Mode,
    version: Version,
    touched: str | None = None,
    sources: list[KeyedSource] | None = None,
) -> dict[str, str]:
    """Return queries for the plain rows of the sources in one version, by alias; only those of touched keys if these are given."""
    printer = context.printer(mode, empties=True)
    queries = {}
    for source in node.sources if sources is None else sources:
        rows = str(printer.contents(source.node, version))
        if touched is not None and source.keys:
            rows = _restrict_sql(node, source, rows, touched, broadcast=False)
        batches = [batch for name in source.node.reads for batch in context.relations[name].batches(version)]
        insert_only = all(batch.insert_only for batch in batches)
        queries[source.alias] = expanded_sql(Trace(weighted(context.schema(source.node))), f"({rows})", insert_only=insert_only)
    return queries


def _answer(node: AffectedKeys, rows: Mapping[str, str]) -> str:
    """Return the query for the answer over the sources' plain rows."""
    sources = ", ".join(f"{quote(alias)} AS ({text})" for alias, text in rows.items())
    return f"WITH {sources} SELECT * FROM ({node.query}) AS q({', '.join(map(quote, node.columns))})"


def _make_own_source(stage: Stage, node: AffectedKeys) -> KeyedSource:
    """Return the stage's own contents as a source that has the keys of the node's sources."""
    return KeyedSource(
        "__own", Scan(stage.relation, tuple(name for name, _ in stage.columns)), node.remembered, node.remembered_lookup
    )


def _weighted_sql(answer: str) -> str:
    """Return a query that adds the weight 1 to plain rows."""
    return f"SELECT *, CAST(1 AS BIGINT) AS {WEIGHT} FROM ({answer})"


def _subtract(stage: Stage, now: str, was: str | None, context: Context, mode: Mode) -> Outcome:
    """Return the delta between two answers.

    ``now`` is a query for the current plain rows, ``was`` one for the earlier weighted rows, or None for no rows.
    """
    schema = weighted(stage_schema(stage))
    names = ", ".join(quote(column.name) for column in schema.fields)
    parts = [f"SELECT * FROM ({_weighted_sql(now)}) AS q({names})"]
    if was is not None:
        columns = ", ".join(quote(name) for name, _ in stage.columns)
        parts.append(f"SELECT {columns}, -{WEIGHT} AS {WEIGHT} FROM ({was}) AS q({names})")
    query = str(context.printer(mode).union(parts))
    if mode is Mode.LARGE:
        return context.emit(stage, consolidated_sql(Trace(schema), f"({query})"), mode, consolidated=True)
    return context.emit(stage, query, mode, may_grow=True)
