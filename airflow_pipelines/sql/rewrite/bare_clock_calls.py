"""The rewrite of LOCALTIMESTAMP and LOCALTIME without parentheses, which Spark would take for columns, to calls."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from airflow_pipelines.sql.plan.analyzer import Analyzer
from airflow_pipelines.sql.rewrite.probe import types_in
from airflow_pipelines.sql.rewrite.token_walker import ENDS_VALUE, TokenWalker, mentions
from airflow_pipelines.sql.syntax.dialect import parse_query
from airflow_pipelines.sql.syntax.edits import Edit, Edited

_CALLS = {"localtime": "CURRENT_TIME()", "localtimestamp": "LOCALTIMESTAMP()"}


def bare_clock_calls(query: Edited, analyzer: Analyzer) -> Edited:
    """Write the functions as calls in a query, except where the name is a column's.

    :param query: folded text that parses
    :param analyzer: the analyzer, which knows the relations that the query reads
    """
    edits = bare_clock_edits(query.text)
    if not edits:
        return query
    selects: dict[int, exp.Select] = {}
    for node in parse_query(query.text).walk():
        select = node.find_ancestor(exp.Select) if "start" in node.meta else None
        if select is not None:
            selects[node.meta["start"]] = select
    return query.edit([edit for edit in edits if not _is_column(query.text, edit, selects, analyzer)])


def bare_clock_edits(text: str) -> list[Edit]:
    """Return the edits that write the functions as calls in a text without columns, such as a DEFAULT.

    :param text: folded Spark SQL
    """
    if not mentions(text, *_CALLS):
        return []
    walker = TokenWalker(text)
    return [
        Edit(walker.start(at), walker.end(at), _CALLS[walker.word(at)])
        for at in range(len(walker.tokens))
        if walker.word(at) in _CALLS
        and not _is_alias(walker, at)
        and walker.word(at - 1) != "."
        and walker.word(at + 1) not in {"(", "."}
    ]


def _is_alias(walker: TokenWalker, at: int) -> bool:
    before = walker.tokens[at - 1].token_type if at else None
    return walker.word(at - 1) == "as" or before is TokenType.STRING or before in ENDS_VALUE


def _is_column(text: str, edit: Edit, selects: dict[int, exp.Select], analyzer: Analyzer) -> bool:
    name = text[edit.start : edit.end]
    return any(types_in(select, [name], analyzer) is not None for select in _around(selects.get(edit.start)))


def _around(select: exp.Select | None) -> Iterator[exp.Select]:
    """Yield a SELECT and those around it, whose columns it may read too."""
    while select is not None:
        yield select
        select = select.find_ancestor(exp.Select)
