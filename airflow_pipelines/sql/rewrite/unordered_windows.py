"""The rewrite that adds an order to windows without ORDER BY where Spark requires one: NULL, by which all rows are equal.

All columns then break the ties between equal rows, as for any other ORDER BY.
"""

from __future__ import annotations

from collections.abc import Iterator

from airflow_pipelines.sql.rewrite.clauses import Tokens, around, level, selects, split
from airflow_pipelines.sql.rewrite.refused import CallRefused
from airflow_pipelines.sql.rewrite.token_walker import CallTokens, TokenWalker
from airflow_pipelines.sql.syntax.edits import Edit

_NEED_ORDER = frozenset({"cume_dist", "dense_rank", "lag", "lead", "nth_value", "ntile", "percent_rank", "rank", "row_number"})
"""Functions that Spark refuses over a window without ORDER BY."""
_ORDERS = frozenset({"cluster by", "order by", "sort by"})
_ORDER = "ORDER BY NULL"


def unordered_window_edits(walker: TokenWalker) -> Iterator[Edit]:
    """Yield the edits of windows without an order.

    Examples are ``LAG(x) OVER ()``, ``RANK() OVER (PARTITION BY k)`` and ``SUM(x) OVER (RANGE UNBOUNDED PRECEDING)``.

    :param walker: the query
    :raises CallRefused: if a RANGE frame measures distances and there is no order
    """
    for call in walker.calls():
        over = _behind_options(walker, call)
        definition = _definition(walker, over + 1) if walker.word(over) == "over" else None
        if definition is None or any(walker.word(at) in _ORDERS for at in level(walker, definition)):
            continue
        frame = next(
            (at for at in level(walker, definition) if walker.word(at) in {"range", "rows"} and _is_frame(walker, at)), None
        )
        in_range = frame is not None and walker.word(frame) == "range"
        if frame is not None and in_range and _is_measured(walker, (frame, definition[1])):
            message = "RANGE measures from the value of ORDER BY, which this window has none of: add it, or count rows with ROWS"
            raise CallRefused(walker.start(frame), walker.end(definition[1] - 1), message)
        if in_range or call.name.lower() in _NEED_ORDER:
            yield _add_order(walker, over + 1, definition, definition[1] if frame is None else frame)


def _behind_options(walker: TokenWalker, call: CallTokens) -> int:
    """Return the token behind a call and its NULLS and FILTER clauses."""
    at = call.close + 1
    while True:
        if walker.word(at) in {"ignore", "respect"} and walker.word(at + 1) == "nulls":
            at += 2
        elif walker.word(at) == "filter" and walker.word(at + 1) == "(":
            at = (walker.closing(at + 1) or at + 1) + 1
        else:
            return at


def _definition(walker: TokenWalker, at: int) -> Tokens | None:
    """Return the tokens of the window that is written or named at a token, without parentheses, or None if there is none."""
    close = walker.closing(at) if walker.word(at) == "(" else None
    if close is not None and not (close == at + 2 and walker.name(at + 1)):
        return at + 1, close
    name = walker.name(at if close is None else at + 1)
    select = around(selects(walker), at)
    for first, behind in split(walker, select.clauses.get("window", (0, 0))) if select is not None else ():
        if name and walker.name(first) == name and walker.word(first + 2) == "(":
            return first + 3, behind - 1
    return None


def _is_frame(walker: TokenWalker, at: int) -> bool:
    """Return True if RANGE or ROWS at a token begins a frame, and is no column."""
    begins = walker.word(at + 1) in {"between", "current", "interval", "unbounded"}
    return walker.word(at) in {"range", "rows"} and (begins or walker.word(at + 2) in {"following", "preceding"})


def _is_measured(walker: TokenWalker, frame: Tokens) -> bool:
    """Return True if a bound of a frame is a distance."""
    sides = [at for at in level(walker, frame) if walker.word(at) in {"following", "preceding"}]
    return any(walker.word(at - 1) != "unbounded" for at in sides)


def _add_order(walker: TokenWalker, at: int, definition: Tokens, place: int) -> Edit:
    """Return the edit that gives the window at a token an order.

    :param definition: the tokens of the window
    :param place: the token before which the order is inserted
    """
    first, behind = definition
    before = walker.piece(walker.start(first), walker.end(place - 1)) if first < place else ""
    frame = walker.piece(walker.start(place), walker.end(behind - 1)) if place < behind else ""
    written = " ".join(part for part in (before, _ORDER, frame) if part)
    end = walker.closing(at) if walker.word(at) == "(" else at
    return Edit(walker.start(at), walker.end(at if end is None else end), f"({written})")
