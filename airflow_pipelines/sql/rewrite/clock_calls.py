"""The rewrite of NOW() and its relatives to reads of the clock: a scalar subquery over its marker, which is always right."""

from __future__ import annotations

from collections.abc import Collection

from sqlglot.tokenizer_core import Token, TokenType

from airflow_pipelines.program.names import quote
from airflow_pipelines.sql.plan.ir.markers import CLOCK_COLUMN, CLOCK_RELATION
from airflow_pipelines.sql.rewrite.token_walker import mentions
from airflow_pipelines.sql.syntax.dialect import tokenise
from airflow_pipelines.sql.syntax.edits import Edit

_MARKER = f"(SELECT {quote(CLOCK_COLUMN)} FROM {quote(CLOCK_RELATION)})"
_DATE = "CAST({now} AS DATE)"
_TIME = "MAKE_TIME(HOUR({now}), MINUTE({now}), EXTRACT(SECOND FROM {now}))"
_CALLS = {
    "now": "{now}",
    "current_timestamp": "{now}",
    "localtimestamp": "{now}",
    "current_date": _DATE,
    "curdate": _DATE,
    "current_time": _TIME,
    "unix_timestamp": "UNIX_SECONDS(CAST({now} AS TIMESTAMP))",
}
"""Spark SQL for a call, over the time as a TIMESTAMP without time zone."""
_BARE = frozenset({"current_timestamp", "current_date", "current_time"})
"""Functions that may be called without parentheses."""


def clock_edits(query: str, columns: Collection[str], now: str = _MARKER) -> list[Edit]:
    """Return the edits that make every clock function of a query read the pipeline's clock.

    NOW() and CURRENT_TIMESTAMP are TIMESTAMPs without time zone, the type of a table's TIMESTAMP columns.

    :param query: Spark SQL
    :param columns: the names of all columns that the query may read; such a name without parentheses is the column
    :param now: Spark SQL for the time; by default a scalar subquery over the clock's marker
    """
    if not mentions(query, *_CALLS):
        return []
    tokens = tokenise(query)
    edits = []
    for at, token in enumerate(tokens):
        name = token.text.lower()
        if name not in _CALLS or token.token_type in (TokenType.IDENTIFIER, TokenType.STRING):
            continue
        before = tokens[at - 1].text.lower() if at else ""
        if before in {".", "as"}:
            continue
        call = _call(tokens, at, name)
        if call is not None:
            end, text = call
            edits.append(Edit(token.start, tokens[end].end + 1, text.format(now=now)))
        elif (
            name in _BARE and name not in columns and not _is_followed_by(tokens, at, "(") and not _is_followed_by(tokens, at, ".")
        ):
            edits.append(Edit(token.start, token.end + 1, _CALLS[name].format(now=now)))
    return edits


def _call(tokens: list[Token], at: int, name: str) -> tuple[int, str] | None:
    """Return the last token of the call that begins at token ``at``, and its replacement, or None if there is no such call.

    A call has no arguments, except that CURRENT_TIME may have a precision.
    """
    if not _is_followed_by(tokens, at, "("):
        return None
    if _is_followed_by(tokens, at + 1, ")"):
        return at + 2, _CALLS[name]
    precision = tokens[at + 2].text if at + 2 < len(tokens) else ""
    if name == "current_time" and precision.isdigit() and _is_followed_by(tokens, at + 2, ")"):
        return at + 3, f"CAST({_TIME} AS TIME({precision}))"
    return None


def _is_followed_by(tokens: list[Token], at: int, text: str) -> bool:
    return at + 1 < len(tokens) and tokens[at + 1].text == text
