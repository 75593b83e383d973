"""The rewrite that makes aggregates independent of row order: lists are sorted, FIRST and LAST give the least or greatest value."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sqlglot import exp

from airflow_pipelines.rows.spark_types import UNKNOWN
from airflow_pipelines.sql.plan.analyzer import AnalysisFailed, Analyzer
from airflow_pipelines.sql.rewrite.probe import types_in
from airflow_pipelines.sql.rewrite.token_walker import CallTokens, TokenWalker, mentions
from airflow_pipelines.sql.syntax.dialect import SyntaxFailure, parse_query
from airflow_pipelines.sql.syntax.edits import Edit, Edited
from airflow_pipelines.sql.values.total_order import ListKey, has_order, sortable, sorted_list

_LISTS = frozenset({"array_agg", "collect_list", "collect_set"})
_LEAST = frozenset({"any_value", "first", "first_value"})
_GREATEST = frozenset({"last", "last_value"})
_ORDER_INSENSITIVE = frozenset(
    {"array_length", "array_max", "array_min", "array_size", "array_sort", "cardinality", "size", "sort_array"}
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Aggregate:
    """A call without OVER: its argument, its FILTER and IGNORE NULLS clauses, and the offset where they end."""

    call: CallTokens
    value: str
    distinct: bool
    condition: str
    nulls: str
    ignores_nulls: bool
    end: int


def deterministic_aggregates(query: Edited, analyzer: Analyzer) -> Edited:
    """Sort the lists of aggregates, and make FIRST, LAST and ANY_VALUE choose by value.

    ``COLLECT_LIST``, ``ARRAY_AGG`` and ``COLLECT_SET`` are sorted. ``FIRST`` and ``ANY_VALUE`` give the least value, where NULL
    comes before all others unless NULLs are ignored; ``LAST`` gives the greatest.

    :param query: Spark SQL that Spark accepts
    :param analyzer: the analyzer, which knows the relations that the query reads
    :raises SyntaxFailure: if the values cannot be sorted; offsets are those of the query as first written
    """
    while mentions(query.text, *_LISTS, *_LEAST, *_GREATEST):
        walker = TokenWalker(query.text)
        aggregates = list(_aggregates(walker))
        inner = [
            one for one in aggregates if not any(other.call.start > one.call.start and other.end <= one.end for other in aggregates)
        ]
        if not inner:
            return query
        tree = parse_query(query.text)
        after = query.edit([_edit(one, _kind(one, tree, analyzer)) for one in inner])
        try:
            analyzer.columns(after.text)
        except AnalysisFailed as failure:
            name = inner[0].call.name
            message = f"{name}() gives its values in any order here; give it an order, or use min_by(value, key)"
            raise SyntaxFailure(*query.origin(inner[0].call.start, inner[0].call.end), message) from failure
        query = after
    return query


def _aggregates(walker: TokenWalker) -> Iterator[_Aggregate]:
    for call in walker.calls():
        if call.name not in _LISTS | _LEAST | _GREATEST or not call.arguments:
            continue
        at, condition, nulls = call.close, "", ""
        if walker.word(at + 1) == "filter" and walker.word(at + 2) == "(":
            close = walker.closing(at + 2)
            if close is None:
                continue
            condition, at = f" {walker.piece(walker.start(at + 1), walker.end(close))}", close
        width = _nulls(walker, at + 1)
        if width:
            nulls, at = f" {walker.piece(walker.start(at + 1), walker.end(at + width))}", at + width
        if walker.word(at + 1) in {"over", "within", "within group"}:
            continue
        blind = (
            walker.word(call.at - 1) == "(" and walker.word(call.at - 2) in _ORDER_INSENSITIVE and walker.word(at + 1) in {")", ","}
        )
        if call.name in _LISTS and blind:
            continue
        yield _read(walker, call, condition, nulls, walker.end(at))


def _nulls(walker: TokenWalker, at: int) -> int:
    """Return the number of tokens of IGNORE NULLS or RESPECT NULLS at ``at``: 0 if it is not there."""
    if walker.word(at) in {"ignore nulls", "respect nulls"}:
        return 1
    return 2 if walker.word(at) in {"ignore", "respect"} and walker.word(at + 1) == "nulls" else 0


def _read(walker: TokenWalker, call: CallTokens, condition: str, nulls: str, end: int) -> _Aggregate:
    first, last, ignores = call.at + 2, call.close, "ignore" in nulls.lower()
    distinct = walker.word(first) == "distinct"
    for width in (1, 2):
        if _nulls(walker, last - width) == width:
            ignores, last = walker.word(last - width).startswith("ignore"), last - width
            break
    if len(call.arguments) == 2:
        # first(x, true) ignores NULLs.
        ignores = walker.piece(*call.arguments[1]).strip().lower() == "true"
        value = walker.piece(*call.arguments[0])
    else:
        value = walker.piece(walker.start(first), walker.end(last - 1))
    if distinct:
        value = value[len("distinct") :].strip()
    return _Aggregate(call, value, distinct, condition, nulls, ignores, end)


def _kind(one: _Aggregate, tree: exp.Expr, analyzer: Analyzer) -> str:
    """Return the Spark type of the aggregated value, or UNKNOWN if Spark cannot determine it."""
    inside = (node for node in tree.walk() if one.call.start < node.meta.get("start", -1) < one.call.end)
    node = next(inside, None)
    select = node.find_ancestor(exp.Select) if node is not None else None
    kinds = types_in(select, [one.value], analyzer) if select is not None else None
    return kinds[0] if kinds else UNKNOWN


def _edit(one: _Aggregate, kind: str) -> Edit:
    distinct = "DISTINCT " if one.distinct else ""
    if one.call.name in _LISTS:
        if has_order(kind):
            text = f"SORT_ARRAY({one.call.name.upper()}({distinct}{one.value}){one.condition}{one.nulls})"
        else:
            # Each value without an order is paired with an expression that has one.
            pair = f"CASE WHEN ({one.value}) IS NOT NULL THEN STRUCT({sortable(one.value, kind)} AS k, {one.value} AS v) END"
            pairs = f"{one.call.name.upper()}({distinct}{pair}){one.condition}{one.nulls}"
            text = f"TRANSFORM({sorted_list(pairs, [ListKey('k')])}, __e -> __e.v)"
        return Edit(one.call.start, one.end, text)
    greatest = one.call.name in _GREATEST
    if has_order(kind):
        text = f"{'MAX' if greatest else 'MIN'}({distinct}{one.value}){one.condition}"
    else:
        key = f"CASE WHEN ({one.value}) IS NOT NULL THEN {sortable(one.value, kind)} END"
        text = f"{'MAX_BY' if greatest else 'MIN_BY'}({one.value}, {key}){one.condition}"
    if not greatest and not one.ignores_nulls:
        text = f"CASE WHEN COUNT_IF(({one.value}) IS NULL){one.condition} = 0 THEN {text} END"
    return Edit(one.call.start, one.end, text)
