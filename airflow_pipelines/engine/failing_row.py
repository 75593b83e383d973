"""The search for a row that makes a step fail: it bisects the deltas until one row is left that fails by itself."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pyarrow as pa

from airflow_pipelines.engine.batch import WEIGHT, Batch
from airflow_pipelines.engine.errors import FailingRow, StepError
from airflow_pipelines.engine.execution.context import Context
from airflow_pipelines.engine.execution.relation_versions import RelationVersions
from airflow_pipelines.engine.spark.intervals import format_intervals

MAX_ROWS = 1_000_000
"""The maximum number of rows of a delta that is searched."""
MAX_SECONDS = 20.0
"""The time limit of the search in seconds: the error must not wait long for the row."""
MAX_TEXT = 200
"""The length at which values are cut."""


Again = Callable[[Context], StepError | None]
"""A function that evaluates a stage within a context, and returns the error that it fails with, or None."""


def find_failing_row(names: frozenset[str], context: Context, failed: StepError, again: Again) -> FailingRow | None:
    """Find one row of the deltas that alone makes a stage fail.

    Not every failure comes from one row: a sum that overflows does not. A row is named only if the same error occurs again with it
    alone.

    :param names: the relations whose deltas the failing stage reads
    :param context: the step's versions of the relations
    :param failed: the error that the stage failed with
    :param again: the function that evaluates the stage once more
    """
    until = time.monotonic() + MAX_SECONDS
    for name in sorted(names & context.find_changed()):
        versions = context.relations[name]
        if sum(batch.rows for batch in versions.delta) > MAX_ROWS:
            continue
        rows = _rows(versions)

        def with_rows(part: pa.Table, name: str = name) -> StepError | None:
            return again(_with_delta(context, name, part))

        if _is_alike(with_rows(rows.slice(0, 0)), failed):
            # The stage fails even without rows of this relation.
            continue
        row = _bisect(rows, failed, with_rows, until)
        if row is not None:
            return FailingRow(name, _to_readable(format_intervals(row, versions.before.schema)))
    return None


def _bisect(rows: pa.Table, failed: StepError, with_rows: Callable[[pa.Table], StepError | None], until: float) -> pa.Table | None:
    same = False
    while rows.num_rows > 1:
        if time.monotonic() > until:
            return None
        middle = rows.num_rows // 2
        half = _find_failing_part(failed, with_rows, (rows.slice(0, middle), rows.slice(middle)))
        if half is None:
            return None
        rows, same = half
    if rows.num_rows != 1 or not (same or _is_same(with_rows(rows), failed)):
        return None
    return rows


def _find_failing_part(
    failed: StepError, with_rows: Callable[[pa.Table], StepError | None], parts: tuple[pa.Table, ...]
) -> tuple[pa.Table, bool] | None:
    """Return the part that fails with the same condition, and True if the message is the same as well.

    Where several rows fail, the error may name any of them.
    """
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


def _to_readable(rows: Any) -> dict[str, Any]:
    """Return a row as a JSON object, with long values cut."""
    row = rows.to_pylist()[0]
    row.pop(WEIGHT, None)
    return {name: _value(value) for name, value in row.items()}


def _value(value: Any) -> Any:
    if value is None or isinstance(value, bool | int | float):
        return value
    text = str(value)
    return text if len(text) <= MAX_TEXT else f"{text[:MAX_TEXT]}..."
