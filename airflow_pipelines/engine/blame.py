"""Which row a step failed on: the deltas are halved until one row is left that fails by itself."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pyarrow as pa

from airflow_pipelines.engine.batch import WEIGHT, Batch
from airflow_pipelines.engine.errors import Culprit
from airflow_pipelines.engine.operators.context import Context, RelationVersions
from airflow_pipelines.sql.plan.nodes import Aggregate, Node

MAX_ROWS = 1_000_000
"""A delta with more rows than this is not searched."""
MAX_SECONDS = 20.0
"""The search is given up after this time: whoever waits for the error needs it more than the row."""
MAX_TEXT = 200
"""Longer values are cut."""
_COLUMN = re.compile(r"`?\b(__c\d+)\b`?")


def find_culprit(names: frozenset[str], context: Context, fails: Callable[[Context], bool]) -> Culprit | None:
    """One row of the deltas that is enough to fail, or None: not every failure is one row's, as when a sum overflows.

    :param names: the relations whose deltas the failing stage reads
    :param context: the step's versions of the relations
    :param fails: evaluates the stage within a context and says whether it fails in the same way
    """
    until = time.monotonic() + MAX_SECONDS
    for name in sorted(names & context.changed()):
        versions = context.relations[name]
        if sum(batch.rows for batch in versions.delta) > MAX_ROWS:
            continue
        rows = _rows(versions)
        if fails(_with_delta(context, name, rows.slice(0, 0))):
            # It fails whatever this relation's rows are.
            continue
        found = _halved(rows, lambda part, name=name: fails(_with_delta(context, name, part)), until)  # type: ignore[misc]
        if found is not None:
            return Culprit(name, _readable(found))
    return None


def named(expression: str | None, node: Node) -> str | None:
    """A failing expression with the query's names instead of those that the plan has for an aggregate's columns."""
    if expression is None or not isinstance(node, Aggregate):
        return expression
    texts = {item.name: item.text for item in node.input.items}
    return _COLUMN.sub(lambda found: texts.get(found[1], found[1]), expression).replace("`", "")


def _halved(rows: Any, fails: Callable[[Any], bool], until: float) -> Any | None:
    while rows.num_rows > 1:
        if time.monotonic() > until:
            return None
        middle = rows.num_rows // 2
        parts = (rows.slice(0, middle), rows.slice(middle))
        rows = next((part for part in parts if fails(part)), None)
        if rows is None:
            return None
    return rows if rows.num_rows == 1 else None


def _rows(versions: RelationVersions) -> Any:
    return pa.concat_tables([batch.to_arrow() for batch in versions.delta])


def _with_delta(context: Context, name: str, rows: Any) -> Context:
    versions = context.relations[name]
    batch = context.settle(Batch.in_memory(versions.before.schema, rows))
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
