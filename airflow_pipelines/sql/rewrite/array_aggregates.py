"""The rewrite of ARRAY_AGG with ORDER BY, or with RESPECT or IGNORE NULLS."""

from __future__ import annotations

from collections.abc import Iterator

from airflow_pipelines.sql.rewrite.clauses import Tokens, level, split
from airflow_pipelines.sql.rewrite.token_walker import CallTokens, TokenWalker
from airflow_pipelines.sql.syntax.edits import Edit
from airflow_pipelines.sql.values.total_order import ListKey, sorted_list

_NULLS = frozenset({"ignore", "respect"})


def array_aggregate_edits(walker: TokenWalker) -> Iterator[Edit]:
    """Yield the edits that replace such calls, with their FILTER and OVER clauses.

    Without RESPECT NULLS the list has no NULLs, as in Spark. Values with equal keys are in their own order.

    :param walker: the query
    """
    for call in walker.calls():
        if call.name == "array_agg" and call.close > call.at + 2:
            edit = _edit(walker, call)
            if edit is not None:
                yield edit


def _edit(walker: TokenWalker, call: CallTokens) -> Edit | None:
    stop, nulls = call.close, ""
    order = next((at for at in level(walker, (call.at + 2, stop)) if walker.word(at) == "order by"), stop)
    keys = [_key(walker, tokens, at) for at, tokens in enumerate(split(walker, (order + 1, stop)))] if order < stop else []
    stop = order
    if walker.word(stop - 1) == "nulls" and walker.word(stop - 2) in _NULLS:
        nulls, stop = walker.word(stop - 2), stop - 2
    behind = call.close + 1
    if walker.word(behind) in _NULLS and walker.word(behind + 1) == "nulls":
        nulls, behind = walker.word(behind), behind + 2
    distinct = walker.word(call.at + 2) in {"all", "distinct"}
    first = call.at + 3 if distinct else call.at + 2
    if first >= stop or not (nulls or keys):
        return None
    value = walker.piece(walker.start(first), walker.end(stop - 1))
    if not keys and nulls == "ignore":
        word = "DISTINCT " if walker.word(call.at + 2) == "distinct" else ""
        return Edit(call.start, walker.end(behind - 1), f"array_agg({word}{value})")
    end = _end(walker, behind)
    suffix = walker.piece(walker.end(behind - 1), walker.end(end - 1))
    collect = "collect_set" if walker.word(call.at + 2) == "distinct" else "collect_list"
    fields = "".join(f", '{key.field}', {text}" for text, key in keys)
    rows = f"SORT_ARRAY({collect}(NAMED_STRUCT('__e', {value}{fields})){suffix})"
    if keys:
        rows = sorted_list(rows, [key for _, key in keys])
    if nulls != "respect":
        rows = f"FILTER({rows}, __r -> __r.__e IS NOT NULL)"
    return Edit(call.start, walker.end(end - 1), f"TRANSFORM({rows}, __r -> __r.__e)")


def _key(walker: TokenWalker, tokens: Tokens, number: int) -> tuple[str, ListKey]:
    """Read ``expression [ASC | DESC] [NULLS FIRST | NULLS LAST]``. By default NULL is the least value."""
    first, stop = tokens
    nulls = ""
    if walker.word(stop - 1) in {"first", "last"} and walker.word(stop - 2) == "nulls":
        nulls, stop = walker.word(stop - 1), stop - 2
    descending = walker.word(stop - 1) == "desc"
    stop -= walker.word(stop - 1) in {"asc", "desc"}
    key = ListKey(f"__k{number}", descending, nulls == "first" if nulls else not descending)
    return walker.piece(walker.start(first), walker.end(stop - 1)), key


def _end(walker: TokenWalker, behind: int) -> int:
    """Return the token behind the FILTER and OVER clauses that begin at a token."""
    if walker.word(behind) == "filter" and walker.word(behind + 1) == "(":
        behind = (walker.closing(behind + 1) or behind) + 1
    if walker.word(behind) == "over":
        closing = walker.closing(behind + 1) if walker.word(behind + 1) == "(" else behind + 1
        behind = (closing or behind) + 1
    return behind
