"""Groups by session window that can be computed from the columns directly."""

from __future__ import annotations

import re
from collections.abc import Mapping

from airflow_pipelines.sql.plan.blocks.calls_over_rows import calls_over_rows
from airflow_pipelines.sql.plan.ir.aggregate import Aggregate, CallsOverRows, KeptValue
from airflow_pipelines.sql.plan.ir.session_totals import SessionTime, SessionTotals

_SESSION = re.compile(
    r"session_window\((\w+), '(?:interval\s+)?([1-9]\d{0,8})\s+(second|minute|hour)s?'\)",
    re.IGNORECASE,
)
"""A ``session_window`` call over a column with a gap of fixed length, for which no calendar matters."""
_FIELD = re.compile(r"(__k\d+)\.`(start|end)`")
_MICROSECONDS = {"second": 1_000_000, "minute": 60_000_000, "hour": 3_600_000_000}


def session_totals(node: Aggregate) -> SessionTotals | None:
    """Return the totals of an aggregate by session, or None if a key, a value or a result column is an expression.

    :param node: the aggregate
    """
    columns = {key.name: key.text for key in node.keys if key.text in node.input.columns}
    sessions = {key.name: call for key in node.keys if (call := _SESSION.fullmatch(key.text)) is not None}
    over = calls_over_rows(node)
    if over is None or node.having is not None or len(sessions) != 1 or len(columns) + 1 != len(node.keys):
        return None
    ((session, call),) = sessions.items()
    totals = [accumulator.column_total for accumulator in over.accumulators]
    if any(total is None or total.value not in (None, *node.input.columns) for total in totals):
        return None
    outputs = [_output(item.text, session, columns, over) for item in node.items]
    found = tuple(output for output in outputs if output is not None)
    gap = int(call[2]) * _MICROSECONDS[call[3].lower()]
    is_whole = len(found) == len(outputs) and call[1] in node.input.columns
    return SessionTotals(tuple(columns.values()), call[1], gap, over.accumulators, found) if is_whole else None


def _output(text: str, session: str, columns: Mapping[str, str], over: CallsOverRows) -> SessionTime | str | KeptValue | None:
    """Return the source of a result column: a bound of the session, a key or an accumulator; None if it is anything else."""
    field = _FIELD.fullmatch(text)
    if field is not None:
        return SessionTime(field[2]) if field[1] == session else None
    return columns.get(text) or next((call.kept for call in over.calls if call.name == text), None)
