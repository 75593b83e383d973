"""The rewrite of comparisons of MAPs, which Spark refuses, to comparisons of their entries in the order of the keys."""

from __future__ import annotations

from collections.abc import Iterator

from airflow_pipelines.sql.rewrite.clauses import Tokens, level, split, text
from airflow_pipelines.sql.rewrite.token_walker import TokenWalker
from airflow_pipelines.sql.syntax.edits import Edit
from airflow_pipelines.sql.values.total_order import sortable

_OPERATORS = frozenset({"=", "==", "<>", "!=", "<=>", "<", "<=", ">", ">="})
_EXTREMES = {"max": "MAX_BY", "min": "MIN_BY"}
_DIRECTIONS = frozenset({"asc", "desc", "nulls", "first", "last"})


def compare_maps(kind: str, function: str, query: str, start: int, end: int) -> list[Edit]:
    """Compare MAPs, or arrays of them, by their entries in the order of the keys, NULL as the least value.

    :param kind: the type that Spark does not order
    :param function: Spark's name of the comparing function or operator
    :param query: the query
    :param start: the offset of the expression that Spark refuses
    :param end: the offset behind it
    :returns: the edits; empty for any other comparison and for other types
    """
    walker = TokenWalker(query)
    at = [at for at, token in enumerate(walker.tokens) if start <= token.start and token.end < end]
    if not at or not kind.lower().startswith(("map<", "array<")) or "VARIANT" in kind:
        return []
    edits = list(_edits(walker, function, (at[0], at[-1] + 1), kind))
    return [edit for edit in edits if edit is not None] if all(edit is not None for edit in edits) else []


def _edits(walker: TokenWalker, function: str, tokens: Tokens, kind: str) -> Iterator[Edit | None]:
    """Yield the edits, or None for each operand that is not found."""
    first, behind = tokens
    called = walker.word(first + 1) == "(" and walker.closing(first + 1) == behind - 1
    arguments = split(walker, (first + 2, behind - 1)) if called else []
    match function:
        case "=" | "<=>" | "<" | "<=" | ">" | ">=":
            operators = [at for at in level(walker, tokens) if walker.word(at) in _OPERATORS]
            if len(operators) == 1:
                yield _entries(walker, (first, operators[0]), kind)
                yield _entries(walker, (operators[0] + 1, behind), kind)
            elif walker.word(first) == "is" and not operators:
                start = first + (4 if walker.word(first + 1) == "not" else 3)
                yield _entries(walker, (walker.operand(first - 1), first), kind)
                yield _entries(walker, (start, behind), kind)
        case "in":
            opening = first + (2 if walker.word(first) == "not" else 1)
            yield _entries(walker, (walker.operand(first - 1), first), kind)
            for value in split(walker, (opening + 1, behind - 1)) if walker.word(opening) == "(" else ():
                yield _entries(walker, value, kind)
        case "sortorder":
            while behind > first + 1 and walker.word(behind - 1) in _DIRECTIONS:
                behind -= 1
            yield _entries(walker, (first, behind), kind)
        case "max_by" | "min_by" if len(arguments) == 2:
            yield _entries(walker, arguments[1], kind)
        case "max" | "min" if len(arguments) == 1 and walker.word(arguments[0][0]) not in {"all", "distinct"}:
            argument = text(walker, arguments[0])
            extreme = f"{_EXTREMES[function]}({argument}, {sortable(argument, kind)})"
            yield Edit(walker.start(first), walker.end(behind - 1), extreme)


def _entries(walker: TokenWalker, tokens: tuple[int | None, int], kind: str) -> Edit | None:
    """Return the edit that replaces an operand by its entries, or None if the start of the operand is not known."""
    first, behind = tokens
    if first is None or first >= behind:
        return None
    return Edit(walker.start(first), walker.end(behind - 1), sortable(text(walker, (first, behind)), kind))
