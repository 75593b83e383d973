"""Groups by session window that can be computed from the columns directly."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from sqlglot import exp

from airflow_pipelines.rows.expressions.columns import column_name
from airflow_pipelines.rows.expressions.time_windows import fixed_length
from airflow_pipelines.sql.plan.blocks.calls_over_rows import calls_over_rows
from airflow_pipelines.sql.plan.ir.aggregate import Aggregate, CallsOverRows, KeptValue
from airflow_pipelines.sql.plan.ir.expression import Expression
from airflow_pipelines.sql.plan.ir.session_totals import SessionTime, SessionTotals

_UNITS: Final = frozenset({"second", "minute", "hour"})
"""The units of gaps for which no calendar matters."""
_TIMES: Final = {time.value: time for time in SessionTime}


def session_totals(node: Aggregate) -> SessionTotals | None:
    """Return the totals of an aggregate by session, or None if a key, a value or a result column is an expression.

    :param node: the aggregate
    """
    columns = {key.name: key.text for key in node.keys if key.text in node.input.columns}
    sessions = {key.name: call for key in node.keys if (call := _session_of(key.text)) is not None}
    over = calls_over_rows(node)
    if over is None or node.having is not None or len(sessions) != 1 or len(columns) + 1 != len(node.keys):
        return None
    ((session, (time, gap)),) = sessions.items()
    totals = [accumulator.column_total for accumulator in over.accumulators]
    if any(total is None or total.value not in (None, *node.input.columns) for total in totals):
        return None
    outputs = [_output(item.text, session, columns, over) for item in node.items]
    known = tuple(output for output in outputs if output is not None)
    is_whole = len(known) == len(outputs) and time in node.input.columns
    return SessionTotals(tuple(columns.values()), time, gap, over.accumulators, known) if is_whole else None


def _session_of(expression: Expression) -> tuple[str, int] | None:
    """Return the column and the gap of a call of ``session_window`` with a gap of fixed length, or None for anything else."""
    tree = expression.tree
    if not isinstance(tree, exp.Anonymous) or tree.name.lower() != "session_window" or len(tree.expressions) != 2:
        return None
    column, gap = column_name(tree.expressions[0]), fixed_length(tree.expressions[1], _UNITS)
    return (column[0], gap) if column is not None and len(column) == 1 and gap else None


def _output(
    text: Expression, session: str, columns: Mapping[str, str], over: CallsOverRows
) -> SessionTime | str | KeptValue | None:
    """Return the source of a result column: a bound of the session, a key or an accumulator; None if it is anything else."""
    match text.column_name:
        case (key, bound) if bound in _TIMES:
            return _TIMES[bound] if key == session else None
    return columns.get(text) or next((call.kept for call in over.calls if call.name == text), None)
