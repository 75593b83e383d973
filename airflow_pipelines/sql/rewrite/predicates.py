"""The rewrite of predicates that Spark lacks: BETWEEN SYMMETRIC, and OVERLAPS and the other comparisons of periods."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from airflow_pipelines.sql.rewrite.token_walker import TokenWalker
from airflow_pipelines.sql.syntax.dialect import QUERY_STARTS, SyntaxFailure, operand_size
from airflow_pipelines.sql.syntax.edits import Edit

_PERIODS: Mapping[str, str] = {
    "overlaps": "({e0} >= {s1} AND {e1} >= {s0})",
    "contains": "({s0} <= {s1} AND {e0} >= {e1})",
    "equals": "({s0} = {s1} AND {e0} = {e1})",
    "precedes": "({e0} <= {s1})",
    "succeeds": "({s0} >= {e1})",
    "immediately precedes": "({e0} = {s1})",
    "immediately succeeds": "({s0} = {e1})",
}
"""The condition on starts and ends for each comparison of two periods."""
_BEFORE_OPERAND = frozenset(
    {
        "(", "[", "{", ",", "->", "all", "and", "as", "by", "case", "distinct", "else", "group by", "having", "in", "not", "on",
        "or", "order by", "partition by", "qualify", "select", "then", "using", "when", "where",
    }
)  # fmt: skip
"""The tokens that may precede the operand of a comparison and are no part of it."""
_PAIRS = frozenset({"period", "row", "struct"})
"""The words before the two bounds of a period."""


def predicate_edits(walker: TokenWalker) -> Iterator[Edit]:
    """Yield the edits that rewrite predicates. Edits may be nested; inner ones must be applied first.

    :param walker: the query
    """
    for at in range(len(walker.tokens)):
        word = walker.name(at)
        edit = None
        if word == "between" and walker.name(at + 1) in {"symmetric", "asymmetric"}:
            edit = _between(walker, at)
        elif word in _PERIODS and walker.word(at - 1) in {")", "immediately", "not"}:
            edit = _period(walker, at)
        if edit is not None:
            yield edit


def _between(walker: TokenWalker, at: int) -> Edit | None:
    if walker.name(at + 1) == "asymmetric":
        return Edit(walker.start(at + 1), walker.end(at + 1), "")
    negated = walker.word(at - 1) == "not"
    first = _operand_before(walker, at - 2 if negated else at - 1)
    middle = _operand_after(walker, at + 2)
    if first is None or middle is None or walker.word(middle) != "and":
        return None
    last = _operand_after(walker, middle + 1)
    if last is None:
        return None
    value = walker.piece(walker.start(first), walker.end(at - 2 if negated else at - 1))
    one, other = (
        walker.piece(walker.start(at + 2), walker.end(middle - 1)),
        walker.piece(walker.start(middle + 1), walker.end(last - 1)),
    )
    text = f"({value} BETWEEN {one} AND {other} OR {value} BETWEEN {other} AND {one})"
    return Edit(walker.start(first), walker.end(last - 1), f"(NOT {text})" if negated else text)


def _operand_before(walker: TokenWalker, last: int) -> int | None:
    """Return the first token of the operand that ends at token ``last``."""
    at, cases = last, 0
    while at >= 0:
        word = walker.word(at)
        if word in {")", "]"}:
            opened = walker.opening(at)
            if opened is None:
                return None
            at = opened - 1
            continue
        if word == "end":
            cases += 1
        elif cases:
            cases -= word == "case"
        elif word in _BEFORE_OPERAND:
            break
        at -= 1
    return at + 1 if at < last else None


def _operand_after(walker: TokenWalker, first: int) -> int | None:
    """Return the token behind the operand that begins with token ``first``."""
    if first >= len(walker.tokens):
        return None
    try:
        return first + operand_size(walker.tokens[first:], walker.text)
    except SyntaxFailure:
        return None


def _period(walker: TokenWalker, at: int) -> Edit | None:
    """Rewrite ``(a, b) OVERLAPS (c, d)`` and the like.

    The second of a pair may be an interval, and the operand of CONTAINS may be one moment.
    """
    kind, close = walker.name(at), at - 1
    if walker.word(close) == "immediately" and f"immediately {kind}" in _PERIODS:
        kind, close = f"immediately {kind}", close - 1
    negated = walker.word(close) == "not"
    close -= negated
    opened = walker.opening(close) if walker.word(close) == ")" else None
    left = None if opened is None else _pair(walker, opened, close)
    if opened is None or left is None:
        return None
    start = opened - 1 if walker.word(opened - 1) in _PAIRS else opened
    right_at = at + 2 if walker.word(at + 1) in _PAIRS else at + 1
    end = walker.closing(right_at) if walker.word(right_at) == "(" else None
    right = None if end is None else _pair(walker, right_at, end)
    behind = None if end is None else end + 1
    if right is None and kind == "contains":
        behind = _operand_after(walker, at + 1)
        moment = "" if behind is None else walker.piece(walker.start(at + 1), walker.end(behind - 1))
        right = (moment, moment)
    if right is None or behind is None:
        return None
    text = _PERIODS[kind].format(**_bounds("0", left), **_bounds("1", right))
    return Edit(walker.start(start), walker.end(behind - 1), f"(NOT {text})" if negated else text)


def _pair(walker: TokenWalker, opened: int, close: int) -> tuple[str, str] | None:
    """Return the two expressions between two parentheses; a length as the second one is replaced by the end."""
    pieces = list(walker.arguments(opened, close))
    if len(pieces) != 2 or walker.word(opened + 1) in QUERY_STARTS - {"("}:
        return None
    first, second = (walker.piece(*piece) for piece in pieces)
    return first, f"({first} + {second})" if second.lower().startswith("interval") else second


def _bounds(side: str, pair: tuple[str, str]) -> dict[str, str]:
    """Return the start and the end of a period whose bounds may be in either order; both are NULL if one of the bounds is."""
    one, other = pair
    if one == other:
        return {f"s{side}": one, f"e{side}": one}
    return {
        f"s{side}": f"(CASE WHEN {one} <= {other} THEN {one} WHEN {one} > {other} THEN {other} END)",
        f"e{side}": f"(CASE WHEN {one} <= {other} THEN {other} WHEN {one} > {other} THEN {one} END)",
    }
