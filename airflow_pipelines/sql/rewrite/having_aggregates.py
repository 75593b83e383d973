"""The rewrite of HAVING so that its aggregates are columns of the SELECT.

Spark adds aggregates that only HAVING has to the aggregation below it. If it renames the columns of a relation that the query reads
more than once after that, it forgets these aggregates, and refuses a right query.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sqlglot import exp

from airflow_pipelines.program.names import quote
from airflow_pipelines.sql.plan.expressions import distinct
from airflow_pipelines.sql.rewrite.token_walker import TokenWalker
from airflow_pipelines.sql.syntax.aggregate_calls import aggregate_calls
from airflow_pipelines.sql.syntax.dialect import DIALECT, parse_query
from airflow_pipelines.sql.syntax.edits import Edit, Edited

_SET_OPERATORS = frozenset({"union", "except", "intersect", "minus"})
_NAMELESS = frozenset({"in", "exists", "any", "some", "all", "=", "<=>", "<>", "!=", "<", "<=", ">", ">="})
"""The words before a subquery whose columns nothing reads by their names."""
_ENDS = frozenset({"order by", "sort by", "cluster by", "distribute by", "limit", "offset"})


def select_having_aggregates(query: Edited) -> Edited:
    """Make the aggregates of each HAVING columns of its SELECT, and put a SELECT without these columns around it.

    ``SELECT a FROM t GROUP BY a HAVING SUM(b) > 0`` becomes
    ``SELECT a FROM (SELECT a, SUM(b) AS __h0 FROM t GROUP BY a HAVING __h0 > 0) AS __h``.

    :param query: Spark SQL that parses
    :returns: the query itself if nothing can be rewritten
    """
    while (edit := next(_edits(query.text), None)) is not None:
        query = query.edit([edit])
    return query


def _edits(text: str) -> Iterator[Edit]:
    """Yield the edits of the SELECTs that can be rewritten, the last one in the text first. They may contain each other."""
    walker = TokenWalker(text)
    for at in reversed(range(len(walker.tokens))):
        if walker.word(at) == "having" and (place := _find_select(walker, at)) is not None:
            rewritten = _rewrite(walker.piece(place.start, place.end), has_names=place.has_names)
            if rewritten is not None:
                yield Edit(place.start, place.end, rewritten)


@dataclass(frozen=True, slots=True)
class _Select:
    """A SELECT within a text.

    :param start: the offset of its first character
    :param end: the offset behind it
    :param has_names: True if its columns may be read by their names
    """

    start: int
    end: int
    has_names: bool


def _find_select(walker: TokenWalker, having: int) -> _Select | None:
    """Return the SELECT that a HAVING belongs to."""
    level = list(_level(walker, having))
    words = {at: walker.word(at) for at in level}
    first = max((at for at in level if at < having and words[at] == "select"), default=None)
    if first is None:
        return None
    behind = [at for at in level if at > having]
    ends = _SET_OPERATORS if not _SET_OPERATORS & set(words.values()) else _SET_OPERATORS | _ENDS
    last = next((at for at in behind if words[at] in ends), max(level) + 1) - 1
    return _Select(walker.start(first), walker.end(last), has_names=walker.word(min(level) - 2) not in _NAMELESS)


def _level(walker: TokenWalker, at: int) -> Iterator[int]:
    """Yield the tokens between the brackets around a token, without what is in brackets among them."""
    first = at
    while first > 0 and walker.word(first - 1) != "(":
        opened = walker.opening(first - 1) if walker.word(first - 1) == ")" else first - 1
        if opened is None:
            return
        first = opened
    while first < len(walker.tokens) and walker.word(first) != ")":
        yield first
        closed = walker.closing(first) if walker.word(first) == "(" else first
        if closed is None:
            return
        if closed > first:
            yield closed
        first = closed + 1


def _rewrite(text: str, *, has_names: bool) -> str | None:
    """Return a SELECT with the aggregates of its HAVING as columns, or None if it cannot or need not be rewritten."""
    select = parse_query(text)
    if not isinstance(select, exp.Select) or select.args.get("with_") is not None or select.args.get("having") is None:
        return None
    calls = list(aggregate_calls(select.args["having"].this))
    if not calls or any(item.is_star for item in select.expressions):
        return None
    distinct_rows = select.args.get("distinct") is not None
    if distinct_rows and any(select.args.get(name) for name in ("order", "limit", "offset")):
        return None
    names = [item.alias or (item.name if isinstance(item, exp.Column) else "") for item in select.expressions]
    if has_names and not all(names):
        return None
    names = [name or f"__c{at}" for at, name in enumerate(names)]
    if len(set(names)) < len(names):
        return None
    columns = {call.copy(): f"__h{at}" for at, call in enumerate(distinct(calls))}
    for call in calls:
        call.replace(exp.column(columns[call]))
    items = [exp.alias_(item.unalias(), name, quoted=True) for name, item in zip(names, select.expressions, strict=True)]
    items += [exp.alias_(call, name) for call, name in columns.items()]
    select.set("expressions", items)
    select.set("distinct", None)
    head = "SELECT DISTINCT" if distinct_rows else "SELECT"
    return f"{head} {', '.join(map(quote, names))} FROM ({select.sql(dialect=DIALECT)}) AS __h"
