"""The rewrite of fields of rows by number, ``r[1]``, to fields by name: in Spark only arrays have numbered elements."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sqlglot import exp

from airflow_pipelines.program.names import quote
from airflow_pipelines.rows.spark_types import spark_type
from airflow_pipelines.sql.plan.analyzer import Analyzer
from airflow_pipelines.sql.rewrite.probe import select_at, types_in
from airflow_pipelines.sql.rewrite.token_walker import TokenWalker
from airflow_pipelines.sql.syntax.dialect import SyntaxFailure, parse_query
from airflow_pipelines.sql.syntax.edits import Edit, Edited


@dataclass(frozen=True, slots=True)
class _Bracket:
    """``value[key]``, with the offsets of the value and of the bracket (ends exclusive)."""

    value: tuple[int, int]
    start: int
    end: int
    key: str


def name_row_fields(query: Edited, analyzer: Analyzer) -> Edited:
    """Rewrite each ``value[n]`` whose value is a row to ``value.name``; fields count from 1.

    In ``a[0][1][2]`` one call finds only the innermost field, since Spark does not know the type of the expressions around it.

    :param query: Spark SQL that Spark refuses because of a field that is not given by its name
    :param analyzer: the analyzer, which knows the relations that the query reads
    :returns: the query; the same one if none of its brackets can be the refused one
    :raises SyntaxFailure: if the field cannot be determined; offsets are those of the query as first written
    """
    tree = parse_query(query.text)
    edits, unknown = [], []
    for bracket in _brackets(TokenWalker(query.text)):
        value = query.text[slice(*bracket.value)]
        kinds = types_in(select_at(tree, *bracket.value) or exp.Select(), [value], analyzer)
        if kinds is None:
            unknown.append(bracket)
        elif (names := _field_names(kinds[0])) is not None:
            edits.append(_edit(query, bracket, names))
    if not edits and unknown:
        value = query.text[slice(*unknown[0].value)]
        message = f"The type of {value} is not known here: if it is a row, write the name of its field behind a point"
        raise SyntaxFailure(*query.origin(unknown[0].start, unknown[0].end), message)
    return query.edit(edits)


def _brackets(walker: TokenWalker) -> Iterator[_Bracket]:
    """Yield every ``value[key]`` except those whose key is a text."""
    for at in range(1, len(walker.tokens)):
        close = walker.closing(at) if walker.word(at) == "[" else None
        first = walker.operand(at - 1)
        if close is None or close == at + 1 or first is None:
            continue
        key = walker.piece(walker.end(at), walker.start(close)).strip()
        if not key.startswith("'"):
            yield _Bracket((walker.start(first), walker.end(at - 1)), walker.start(at), walker.end(close), key)


def _field_names(kind: str) -> list[str] | None:
    """Return the names of a row's fields, or None for other types."""
    fields = spark_type(kind).fields
    return None if fields is None else [name for name, _ in fields]


def _edit(query: Edited, bracket: _Bracket, names: list[str]) -> Edit:
    if not bracket.key.isdigit():
        message = f"The field of a row is known by a number, from 1 to {len(names)}, or by its name, and not by {bracket.key}"
    elif not 1 <= int(bracket.key) <= len(names):
        message = f"Fields of a row count from 1, and this one has {len(names)}: {', '.join(names)}"
    else:
        return Edit(bracket.start, bracket.end, f".{quote(names[int(bracket.key) - 1])}")
    raise SyntaxFailure(*query.origin(bracket.start, bracket.end), message)
