"""The expansion of ``* [EXCEPT (columns)] REPLACE (expression AS column)`` to the list of all columns."""

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

    A star whose columns Spark cannot tell, or that has two columns of one name, stays as it is, so that Spark refuses it.

    :param query: folded text that parses
    :param analyzer: the analyzer, which knows the relations that the query reads
    """
    if not mentions(query.text, "replace"):
        return query
    walker = TokenWalker(query.text)
    edits = []
    for at in range(1, len(walker.tokens) - 1):
        star = _star(walker, at) if walker.name(at) == "replace" and walker.word(at + 1) == "(" else None
        close = walker.closing(at + 1) if star is not None else None
        if star is not None and close is not None:
            edits += _expand(query.text, walker, star, at, close, analyzer)
    return query.edit(edits)


def _star(walker: TokenWalker, at: int) -> int | None:
    """Return the star before the word REPLACE, possibly with an EXCEPT list in between, or None if there is no star."""
    if walker.word(at - 1) == "*":
        return at - 1
    opened = walker.opening(at - 1) if walker.word(at - 1) == ")" else None
    return opened - 2 if opened is not None and walker.word(opened - 1) == "except" and walker.word(opened - 2) == "*" else None


def _expand(text: str, walker: TokenWalker, star: int, at: int, close: int, analyzer: Analyzer) -> list[Edit]:
    """Return the edit of the star at token ``star``, whose word REPLACE is token ``at`` and whose list ends at token ``close``."""
    left_out = {walker.tokens[place].text for place in range(star + 3, at - 1) if walker.name(place)}
    given = [walker.piece(*argument) for argument in walker.arguments(at + 1, close)]
    computed = {name: piece for piece in given if (name := _alias(piece)) is not None}
    qualified = walker.word(star - 1) == "." and bool(walker.name(star - 2))
    source = walker.tokens[star - 2].text if qualified else ""
    select = _select(text, walker.start(at + 1), walker.end(close))
    columns = star_columns(select, source, analyzer) if select is not None else None
    named = computed.keys() | left_out
    if columns is None or len(set(columns)) < len(columns) or len(computed) < len(given) or not named <= set(columns):
        return []
    start = walker.start(star - 2) if qualified else walker.start(star)
    kept = [name for name in columns if name not in left_out]
    return [Edit(start, walker.end(close), ", ".join(_items(kept, computed, source)))]


def _items(columns: Sequence[str], computed: dict[str, str], source: str) -> list[str]:
    prefix = f"{quote(source)}." if source else ""
    return [computed.get(name, f"{prefix}{quote(name)}") for name in columns]


def _alias(piece: str) -> str | None:
    """Return the column's name in ``expression AS column``."""
    walker = TokenWalker(piece)
    last = len(walker.tokens) - 1
    return walker.tokens[last].text if last > 1 and walker.word(last - 1) == "as" else None


def _select(text: str, start: int, end: int) -> exp.Select | None:
    """Return the SELECT whose star has the list between two offsets."""
    for star in parse_query(text).find_all(exp.Star):
        parts = [part for item in star.args.get("replace") or [] for part in item.walk() if "start" in part.meta]
        if any(start <= part.meta["start"] < end for part in parts):
            return star.find_ancestor(exp.Select)
    return None
