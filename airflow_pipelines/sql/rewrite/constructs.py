"""Constructs of standard SQL that Spark's grammar lacks: UNNEST with places, and differences of times in a unit."""

from __future__ import annotations

from collections.abc import Iterator

from airflow_pipelines.sql.program.column_types import INTERVAL_UNITS
from airflow_pipelines.sql.rewrite.clauses import level, split
from airflow_pipelines.sql.rewrite.token_walker import Call, Scan
from airflow_pipelines.sql.syntax.edits import Edit

_BEFORE_RELATION = frozenset({",", "from", "join", "lateral"})
_BEFORE_VALUE = frozenset(
    {
        "!=", "(", "*", "+", ",", "-", "/", "<", "<=", "<=>", "<>", "=", ">", ">=", "all", "and", "between", "by", "case",
        "distinct", "else", "having", "not", "on", "or", "select", "then", "when", "where",
    }
)  # fmt: skip
_QUERIES = frozenset({"from", "select", "values", "with"})
_ARRAY = "TRANSFORM({}, (__e, __i) -> STRUCT(__e, __i + 1))"
_MAP = "TRANSFORM(MAP_ENTRIES({}), (__e, __i) -> STRUCT(__e.key, __e.value, __i + 1))"


def ordinality_edits(scan: Scan) -> Iterator[Edit]:
    """``UNNEST(x) WITH ORDINALITY AS t(c, place)``: the elements of an array, or the entries of a map, with their places from 1.

    The number of columns says whether it is an array or a map; without a list of columns it is an array.
    """
    for call in scan.calls():
        with_places = scan.word(call.close + 1) == "with" and scan.word(call.close + 2) == "ordinality"
        if call.name == "unnest" and with_places and len(call.arguments) == 1 and scan.word(call.at - 1) in _BEFORE_RELATION:
            yield from _with_places(scan, call)


def _with_places(scan: Scan, call: Call) -> Iterator[Edit]:
    behind = call.close + 3
    alias = behind + 1 if scan.word(behind) == "as" else behind
    close = scan.closing(alias + 1) if scan.name(alias) and scan.word(alias + 1) == "(" else None
    columns = 2 if close is None else len(split(scan, (alias + 2, close)))
    if columns not in {2, 3}:
        return
    value = scan.piece(*call.arguments[0])
    made = f"INLINE({(_ARRAY if columns == 2 else _MAP).format(value)})"
    lateral = "" if scan.word(call.at - 1) in {"from", "lateral"} else "LATERAL "
    named = ""
    if close is None:
        is_named = scan.word(behind) == "as"
        named = "" if is_named else " AS unnest(col, ordinality)"
        if is_named:
            yield Edit(scan.end(alias), scan.end(alias), "(col, ordinality)")
    yield Edit(call.start, scan.end(call.close + 2), f"{lateral}{made}{named}")


def difference_edits(scan: Scan) -> Iterator[Edit]:
    """``(a - b) DAYS``, ``(a - b) HOUR TO MINUTE``: a difference of times as an interval of these units."""
    for close in range(1, len(scan.tokens)):
        units = _units(scan, close + 1) if scan.word(close) == ")" else None
        opened = scan.opening(close) if units is not None else None
        if units is None or opened is None or (scan.word(opened - 1) not in _BEFORE_VALUE and opened > 0):
            continue
        minus = [at for at in level(scan, (opened + 1, close)) if scan.word(at) == "-" and at > opened + 1]
        if not minus or scan.word(opened + 1) in _QUERIES:
            continue
        first, last, stop = units
        kind = f"INTERVAL {first}{f' TO {last}' if last else ''}"
        if first in INTERVAL_UNITS[0]:
            earlier = scan.piece(scan.start(minus[-1] + 1), scan.end(close - 1))
            later = scan.piece(scan.start(opened + 1), scan.end(minus[-1] - 1))
            value = f"MAKE_YM_INTERVAL(0, CAST(TIMESTAMPDIFF(MONTH, {earlier}, {later}) AS INT))"
        else:
            # Only with an interval added it is sure that numbers are not taken for one: (x - y) day may name a column.
            value = f"{scan.piece(scan.start(opened), scan.end(close))} + INTERVAL '0' SECOND"
        yield Edit(scan.start(opened), scan.end(stop - 1), f"CAST({value} AS {kind})")


def _units(scan: Scan, at: int) -> tuple[str, str, int] | None:
    """The units that stand at a token: the first, the last (empty for a single one) and the token behind them."""
    first = _unit(scan.word(at))
    if not first:
        return None
    last = _unit(scan.word(at + 2)) if scan.word(at + 1) == "to" else ""
    return (first, last, at + 3) if last else (first, "", at + 1)


def _unit(word: str) -> str:
    name = word.upper().removesuffix("S")
    return name if any(name in units for units in INTERVAL_UNITS) else ""
