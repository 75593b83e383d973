"""The rewrite of outer joins with a generator, which Spark lacks if the column is or contains a MAP or a VARIANT."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from airflow_pipelines.sql.plan.analyzer import Analyzer
from airflow_pipelines.sql.rewrite import clauses
from airflow_pipelines.sql.rewrite.probe import select_at, types_in
from airflow_pipelines.sql.rewrite.token_walker import CallTokens, TokenWalker, mentions
from airflow_pipelines.sql.syntax.dialect import parse_query
from airflow_pipelines.sql.syntax.edits import Edit, Edited
from airflow_pipelines.sql.values.total_order import has_order

_GENERATORS = frozenset({"explode", "inline", "posexplode"})
"""Generators that have a form with NULLs for an empty input."""


def outer_unnests_of_maps(query: Edited, analyzer: Analyzer) -> Edited:
    """Rewrite ``LEFT JOIN LATERAL EXPLODE(map) ... ON TRUE`` to a cross join with a generator that gives NULLs for no entries.

    A join that reads neither MAPs nor VARIANTs is left alone, because Spark supports it.

    :param query: folded text that parses
    :param analyzer: the analyzer, which knows the relations that the query reads
    """
    if not mentions(query.text, *_GENERATORS):
        return query
    walker = TokenWalker(query.text)
    joined = [(call, ends) for call in walker.calls() if (ends := _left_join(walker, call)) is not None]
    if not joined:
        return query
    tree = parse_query(query.text)
    return query.edit([edit for call, ends in joined for edit in _edits(walker, call, ends, tree, analyzer)])


def _left_join(walker: TokenWalker, call: CallTokens) -> tuple[int, int] | None:
    """Return the tokens LEFT and ON of a join whose right side is the call, and whose condition is TRUE."""
    words = [walker.word(call.at - place) for place in (3, 2, 1)]
    if call.name.lower() not in _GENERATORS or words[1:] != ["join", "lateral"]:
        return None
    first = call.at - 4 if words[0] == "outer" else call.at - 3
    named = clauses.alias(walker, call.close + 1)
    behind = call.close + 1 if named is None else named + 1
    if walker.word(behind) == "(":
        behind = (walker.closing(behind) or behind) + 1
    always = walker.word(behind) == "on" and walker.word(behind + 1) == "true" and walker.word(behind + 2) not in _GOES_ON
    return (first, behind) if walker.word(first) == "left" and always else None


_GOES_ON = frozenset({"!=", "<", "<=", "<=>", "<>", "=", ">", ">=", "and", "in", "is", "or", "||"})
"""The words behind TRUE that make it a part of a longer condition."""


def _edits(walker: TokenWalker, call: CallTokens, ends: tuple[int, int], tree: exp.Expr, analyzer: Analyzer) -> Iterator[Edit]:
    if _has_unordered_argument(walker, call, tree, analyzer):
        yield Edit(walker.start(ends[0]), walker.end(call.at), f"CROSS JOIN LATERAL {call.name}_OUTER")
        yield Edit(walker.end(ends[1] - 1), walker.end(ends[1] + 1), "")


def _has_unordered_argument(walker: TokenWalker, call: CallTokens, tree: exp.Expr, analyzer: Analyzer) -> bool:
    """Return True if the argument of a call, or a column in it, is of a type that Spark does not order."""
    select = select_at(tree, call.start + 1, call.end)
    if select is None or not call.arguments:
        return False
    first, last = call.arguments[0][0], call.arguments[-1][1]
    columns = [column for column in tree.find_all(exp.Column) if first <= column.parts[0].meta.get("start", -1) < last]
    values = [walker.piece(first, last), *(_text(walker, column) for column in columns)]
    # Parameters of lambda functions look like columns and have no type, so that each value is queried alone.
    kinds = [kind for value in dict.fromkeys(values) for kind in types_in(select, [value], analyzer) or ()]
    return not all(map(has_order, kinds))


def _text(walker: TokenWalker, column: exp.Column) -> str:
    return walker.piece(column.parts[0].meta["start"], column.parts[-1].meta["end"] + 1)
