"""The rewrite of standard SQL that Spark's grammar lacks: UNNEST, differences of times, = ANY (subquery), IGNORE NULLS."""

from __future__ import annotations

from collections.abc import Iterator

from airflow_pipelines.rows.types import INTERVAL_UNITS
from airflow_pipelines.sql.rewrite.clauses import alias, level
from airflow_pipelines.sql.rewrite.refused import MEMBERSHIP
from airflow_pipelines.sql.rewrite.token_walker import TokenWalker
from airflow_pipelines.sql.syntax.edits import Edit

BEFORE_RELATION = frozenset({",", "from", "join", "lateral"})
"""The words before a relation."""
_BEFORE_VALUE = frozenset(
    {
        "!=", "(", "*", "+", ",", "-", "/", "<", "<=", "<=>", "<>", "=", ">", ">=", "all", "and", "between", "by", "case",
        "distinct", "else", "having", "not", "on", "or", "select", "then", "when", "where",
    }
)  # fmt: skip
_QUERIES = frozenset({"from", "select", "values", "with"})
_TREATED = frozenset({"first", "first_value", "lag", "last", "last_value", "lead", "nth_value"})
"""Functions that take IGNORE NULLS or RESPECT NULLS, which Spark wants behind the parentheses."""


def unnest_edits(walker: TokenWalker) -> Iterator[Edit]:
    """Yield the edits of ``UNNEST(x) AS t(c)``, and of several arrays side by side.

    Without a list of columns the only column has the relation's name.
    """
    for call in walker.calls():
        before = walker.word(call.at - 1)
        with_places = walker.word(call.close + 1) == "with" and walker.word(call.close + 2) == "ordinality"
        if call.name != "unnest" or not call.arguments or before not in BEFORE_RELATION or with_places:
            continue
        values = ", ".join(walker.piece(*argument) for argument in call.arguments)
        made = f"EXPLODE({values})" if len(call.arguments) == 1 else f"INLINE(ARRAYS_ZIP({values}))"
        yield Edit(call.start, call.end, f"{'' if before in {'from', 'lateral'} else 'LATERAL '}{made}")
        named = alias(walker, call.close + 1)
        if named is not None and walker.word(named + 1) != "(" and len(call.arguments) == 1:
            name = walker.piece(walker.start(named), walker.end(named))
            yield Edit(walker.end(named), walker.end(named), f"({name})")


def difference_edits(walker: TokenWalker) -> Iterator[Edit]:
    """Yield the edits of ``(a - b) DAYS``, ``(a - b) HOUR TO MINUTE``: a difference of times as an interval of these units."""
    for close in range(1, len(walker.tokens)):
        units = _units(walker, close + 1) if walker.word(close) == ")" else None
        opened = walker.opening(close) if units is not None else None
        if units is None or opened is None or (walker.word(opened - 1) not in _BEFORE_VALUE and opened > 0):
            continue
        minus = [at for at in level(walker, (opened + 1, close)) if walker.word(at) == "-" and at > opened + 1]
        if not minus or walker.word(opened + 1) in _QUERIES:
            continue
        first, last, stop = units
        kind = f"INTERVAL {first}{f' TO {last}' if last else ''}"
        if first in INTERVAL_UNITS[0]:
            earlier = walker.piece(walker.start(minus[-1] + 1), walker.end(close - 1))
            later = walker.piece(walker.start(opened + 1), walker.end(minus[-1] - 1))
            value = f"MAKE_YM_INTERVAL(0, CAST(TIMESTAMPDIFF(MONTH, {earlier}, {later}) AS INT))"
        else:
            # The added interval makes Spark refuse numbers: in (x - y) day the word may be the name of a column.
            value = f"{walker.piece(walker.start(opened), walker.end(close))} + INTERVAL '0' SECOND"
        yield Edit(walker.start(opened), walker.end(stop - 1), f"CAST({value} AS {kind})")


def interval_edits(walker: TokenWalker) -> Iterator[Edit]:
    """Yield the edits of ``INTERVAL '10:20' HOURS TO MINUTES``, ``CAST(x AS INTERVAL DAYS)``: units in the plural."""
    for at in range(len(walker.tokens)):
        if walker.word(at) != "interval":
            continue
        is_type = bool(_unit(walker.word(at + 1)))
        first = at + 1 if is_type else at + 2
        pair = walker.word(first + 1) == "to"
        # Spark accepts a single unit behind a value in the plural.
        for place in (first, first + 2) if pair else (first,) if is_type else ():
            if _unit(walker.word(place)) and walker.word(place).endswith("s"):
                yield Edit(walker.start(place), walker.end(place), _unit(walker.word(place)))


def quantified_edits(walker: TokenWalker) -> Iterator[Edit]:
    """Yield the edits of ``x = ANY (SELECT ...)``, ``x = SOME (...)`` and ``x <> ALL (...)``, which are IN and NOT IN."""
    for at in range(1, len(walker.tokens) - 3):
        if walker.word(at + 2) != "(" or walker.word(at + 3) not in {"select", "with"}:
            continue
        word = MEMBERSHIP.get((walker.word(at), walker.word(at + 1)))
        if word is not None:
            yield Edit(walker.start(at), walker.end(at + 1), word)


def null_treatment_edits(walker: TokenWalker) -> Iterator[Edit]:
    """Yield the edits of ``FIRST_VALUE(x IGNORE NULLS)``, ``LAG(x IGNORE NULLS, 1)``: the treatment of NULLs inside parentheses."""
    for call in walker.calls():
        for at in level(walker, (call.at + 2, call.close)) if call.name in _TREATED else ():
            if walker.word(at) in {"ignore", "respect"} and walker.word(at + 1) == "nulls" and walker.word(at + 2) in {",", ")"}:
                yield Edit(walker.end(at - 1), walker.end(at + 1), "")
                yield Edit(call.end, call.end, f" {walker.word(at).upper()} NULLS")


def frame_edits(walker: TokenWalker) -> Iterator[Edit]:
    """Yield the edits of frames with interval bounds of different types, which Spark needs to have one type.

    An example is ``RANGE BETWEEN INTERVAL '6' HOUR PRECEDING AND INTERVAL '1' SECOND PRECEDING``.
    """
    for at in range(len(walker.tokens)):
        if walker.word(at) != "range" or walker.word(at + 1) != "between" or walker.word(at + 2) != "interval":
            continue
        first = _find_bound(walker, at + 2)
        second = _find_bound(walker, first[1] + 2) if walker.word(first[1] + 1) == "and" else (first[1], first[1])
        units = [_units(walker, bound[0] + 2) for bound in (first, second)]
        kinds = [unit[:2] for unit in units if unit is not None and unit[0] not in INTERVAL_UNITS[0]]
        if walker.word(second[0]) == "interval" and len(kinds) == 2 and kinds[0] != kinds[1]:
            for start, end in (first, second):
                text = walker.piece(walker.start(start), walker.end(end - 1))
                yield Edit(walker.start(start), walker.end(end - 1), f"CAST({text} AS INTERVAL DAY TO SECOND)")


def _find_bound(walker: TokenWalker, first: int) -> tuple[int, int]:
    """Return the tokens of a frame's bound: from the first one to the word PRECEDING or FOLLOWING (exclusive)."""
    ends = (at for at in level(walker, (first, len(walker.tokens))) if walker.word(at) in {"following", "preceding"})
    return first, next(ends, first)


def _units(walker: TokenWalker, at: int) -> tuple[str, str, int] | None:
    """Return the units at a token: the first, the last (empty for a single one) and the token behind them."""
    first = _unit(walker.word(at))
    if not first:
        return None
    last = _unit(walker.word(at + 2)) if walker.word(at + 1) == "to" else ""
    return (first, last, at + 3) if last else (first, "", at + 1)


def _unit(word: str) -> str:
    name = word.upper().removesuffix("S")
    return name if any(name in units for units in INTERVAL_UNITS) else ""
