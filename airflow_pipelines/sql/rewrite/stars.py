"""Expands ``* REPLACE (expression AS column)`` to the list of all columns."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from airflow_pipelines.program.names import quote
from airflow_pipelines.sql.plan.analyzer import Analyzer
from airflow_pipelines.sql.rewrite.probe import star_columns
from airflow_pipelines.sql.rewrite.token_walker import TokenWalker, mentions
from airflow_pipelines.sql.syntax.dialect import parse_query
from airflow_pipelines.sql.syntax.edits import Edit, Edited


def expand_star_replace(query: Edited, analyzer: Analyzer) -> Edited:
    """Replace each ``* REPLACE`` by a list of columns.

    One whose columns Spark cannot tell, or which gives two of one name, stays as it is, for Spark to refuse.

    :param query: folded text that parses
    :param analyzer: knows the relations that the query reads
    """
    if not mentions(query.text, "replace"):
        return query
    walker = TokenWalker(query.text)
    edits = []
    for at in range(1, len(walker.tokens) - 1):
        close = (
            walker.closing(at + 1)
            if walker.name(at) == "replace" and walker.word(at - 1) == "*" and walker.word(at + 1) == "("
            else None
        )
        if close is not None:
            edits += _written_out(query.text, walker, at, close, analyzer)
    return query.edit(edits)


def _written_out(text: str, walker: TokenWalker, at: int, close: int, analyzer: Analyzer) -> list[Edit]:
    """The edit of one star whose word REPLACE is token ``at`` and whose list ends with token ``close``."""
    given = [walker.piece(*argument) for argument in walker.arguments(at + 1, close)]
    computed = {name: piece for piece in given if (name := _alias(piece)) is not None}
    qualified = walker.word(at - 2) == "." and bool(walker.name(at - 3))
    source = walker.tokens[at - 3].text if qualified else ""
    select = _select(text, walker.start(at + 1), walker.end(close))
    columns = star_columns(select, source, analyzer) if select is not None else None
    if columns is None or len(set(columns)) < len(columns) or len(computed) < len(given) or not computed.keys() <= set(columns):
        return []
    start = walker.start(at - 3) if qualified else walker.start(at - 1)
    return [Edit(start, walker.end(close), ", ".join(_items(columns, computed, source)))]


def _items(columns: Sequence[str], computed: dict[str, str], source: str) -> list[str]:
    prefix = f"{quote(source)}." if source else ""
    return [computed.get(name, f"{prefix}{quote(name)}") for name in columns]


def _alias(piece: str) -> str | None:
    """The column's name in ``expression AS column``."""
    walker = TokenWalker(piece)
    last = len(walker.tokens) - 1
    return walker.tokens[last].text if last > 1 and walker.word(last - 1) == "as" else None


def _select(text: str, start: int, end: int) -> exp.Select | None:
    """The SELECT whose star has the list between two offsets."""
    for star in parse_query(text).find_all(exp.Star):
        parts = [part for item in star.args.get("replace") or [] for part in item.walk() if "start" in part.meta]
        if any(start <= part.meta["start"] < end for part in parts):
            return star.find_ancestor(exp.Select)
    return None
