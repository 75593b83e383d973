"""Finds a row for which a step fails: halves the deltas until one row is left that fails by itself."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pyarrow as pa

from airflow_pipelines.engine.batch import WEIGHT, Batch
from airflow_pipelines.engine.errors import FailingRow, StepError
from airflow_pipelines.engine.operators.context import Context
from airflow_pipelines.engine.operators.relation_versions import RelationVersions
from airflow_pipelines.engine.spark.intervals import shown

MAX_ROWS = 1_000_000
"""A delta with more rows than this is not searched."""
MAX_SECONDS = 20.0
"""The search is given up after this time: whoever waits for the error needs it more than the row."""
MAX_TEXT = 200
"""Longer values are cut."""


Again = Callable[[Context], StepError | None]
"""Evaluates a stage within a context; gives what it fails with, or None."""


def find_failing_row(names: frozenset[str], context: Context, failed: StepError, again: Again) -> FailingRow | None:
    """One row of the deltas that is enough to fail, or None: not every failure is one row's, as when a sum overflows.

    A row is named only when the same error has come again with it alone.

    :param names: the relations whose deltas the failing stage reads
    :param context: the step's versions of the relations
    :param failed: what the stage failed with
    :param again: evaluates the stage once more
    """
    until = time.monotonic() + MAX_SECONDS
    for name in sorted(names & context.changed()):
        versions = context.relations[name]
        if sum(batch.rows for batch in versions.delta) > MAX_ROWS:
            continue
        rows = _rows(versions)

        def with_rows(part: pa.Table, name: str = name) -> StepError | None:
            return again(_with_delta(context, name, part))

        if _is_alike(with_rows(rows.slice(0, 0)), failed):
            # It fails whatever this relation's rows are.
            continue
        found = _halved(rows, failed, with_rows, until)
        if found is not None:
            return FailingRow(name, _readable(shown(found, versions.before.schema)))
    return None


def _halved(rows: pa.Table, failed: StepError, with_rows: Callable[[pa.Table], StepError | None], until: float) -> pa.Table | None:
    same = False
    while rows.num_rows > 1:
        if time.monotonic() > until:
            return None
        middle = rows.num_rows // 2
        half = _failing(failed, with_rows, (rows.slice(0, middle), rows.slice(middle)))
        if half is None:
            return None
        rows, same = half
    if rows.num_rows != 1 or not (same or _is_same(with_rows(rows), failed)):
        return None
    return rows


def _failing(
    failed: StepError, with_rows: Callable[[pa.Table], StepError | None], parts: tuple[pa.Table, ...]
) -> tuple[pa.Table, bool] | None:
    """The part that fails in the same way, and whether it says the same; where several rows fail, any of them may be told first."""
    alike = None
    for part in parts:
        error = with_rows(part)
        if _is_same(error, failed):
            return part, True
        if alike is None and _is_alike(error, failed):
            alike = part
    return None if alike is None else (alike, False)


def _is_alike(error: StepError | None, failed: StepError) -> bool:
    return error is not None and error.condition == failed.condition


def _is_same(error: StepError | None, failed: StepError) -> bool:
    return error is not None and (error.condition, error.message) == (failed.condition, failed.message)


def _rows(versions: RelationVersions) -> pa.Table:
    return pa.concat_tables([batch.to_arrow() for batch in versions.delta])


def _with_delta(context: Context, name: str, rows: pa.Table) -> Context:
    versions = context.relations[name]
    batch = context.spill_if_large(Batch.in_memory(versions.before.schema, rows))
    delta = (batch,) if batch.rows else ()
    return replace(context, relations={**context.relations, name: replace(versions, delta=delta)})


def _readable(rows: Any) -> dict[str, Any]:
    """A row as JSON has it, long values cut."""
    row = rows.to_pylist()[0]
    row.pop(WEIGHT, None)
    return {name: _value(value) for name, value in row.items()}


def _value(value: Any) -> Any:
    if value is None or isinstance(value, bool | int | float):
        return value
    text = str(value)
    return text if len(text) <= MAX_TEXT else f"{text[:MAX_TEXT]}..."
