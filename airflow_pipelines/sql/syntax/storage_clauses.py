"""Clauses about the storage of a relation, which are parsed and ignored."""

from __future__ import annotations

from collections.abc import Callable

from airflow_pipelines.program.spans import Span
from airflow_pipelines.sql.syntax.cursor import Cursor


def take_head(cursor: Cursor, *words: str) -> None:
    """Skip words between CREATE and a relation's name, if they come next."""
    start = cursor.index
    if cursor.take(*words):
        cursor.ignored.note(" ".join(words).upper(), _span(cursor, start))


def take_clause(cursor: Cursor) -> bool:
    """Skip one clause after a relation's columns, if one comes next.

    :returns: True if there was one
    """
    start = cursor.index
    for words, clause, rest in _CLAUSES:
        if cursor.take(*words):
            rest(cursor)
            cursor.ignored.note(clause, _span(cursor, start))
            return True
    return False


def take_comment(cursor: Cursor) -> bool:
    """Skip the COMMENT of a column, if one comes next.

    :returns: True if there was one
    """
    start = cursor.index
    if not cursor.take("comment"):
        return False
    _text(cursor)
    cursor.ignored.note("COMMENT", _span(cursor, start))
    return True


def take_collation(cursor: Cursor) -> bool:
    """Skip the COLLATE of a column, if one comes next. It may only name the default collation.

    :returns: True if there was one
    """
    if not cursor.take("collate"):
        return False
    _collation(cursor)
    return True


def take_key_hints(cursor: Cursor) -> None:
    """Skip the words about enforcement after a key."""
    while True:
        start = cursor.index
        if cursor.take("not", "enforced"):
            cursor.ignored.note("NOT ENFORCED", _span(cursor, start))
        elif cursor.take("rely") or cursor.take("norely"):
            cursor.ignored.note("RELY", _span(cursor, start))
        elif not (cursor.take("enforced") or cursor.take("enable") or cursor.take("validate")):
            return


def _span(cursor: Cursor, start: int) -> Span:
    return cursor.span(cursor.tokens[start].start, cursor.tokens[cursor.index - 1].end + 1)


def _text(cursor: Cursor) -> None:
    # Spark takes double quotes for a string by default; here, where only a text can occur, both are accepted.
    if not cursor.peek().startswith(("'", "`")):
        raise cursor.failure("Expected a text in single quotes")
    cursor.advance()


def _word(cursor: Cursor) -> None:
    cursor.name("a name")
    while cursor.take("."):
        cursor.name("a name")


def _parenthesis(cursor: Cursor) -> None:
    if not cursor.at("("):
        raise cursor.failure("Expected '('")
    cursor.skip_parenthesis()


def _buckets(cursor: Cursor) -> None:
    _parenthesis(cursor)
    if cursor.take("sorted", "by") or cursor.take("sort by"):
        _parenthesis(cursor)
    cursor.expect("into")
    cursor.integer("a number of buckets")
    cursor.expect("buckets")


def _keys(cursor: Cursor) -> None:
    if cursor.take("auto") or cursor.take("none"):
        return
    _parenthesis(cursor)


def _skewed(cursor: Cursor) -> None:
    _parenthesis(cursor)
    cursor.expect("on")
    _parenthesis(cursor)
    cursor.take("stored", "as", "directories")


def _collation(cursor: Cursor) -> None:
    if not cursor.take("utf8_binary"):
        raise cursor.failure("Texts are compared letter by letter, which is UTF8_BINARY; a query may say COLLATE")


def _row_format(cursor: Cursor) -> None:
    if cursor.take("serde"):
        _text(cursor)
        if cursor.take("with", "serdeproperties"):
            _parenthesis(cursor)
        return
    cursor.expect("delimited")
    while cursor.peek() in _DELIMITERS:
        while cursor.peek() in _DELIMITERS:
            cursor.advance()
        _text(cursor)


def _stored(cursor: Cursor) -> None:
    if cursor.take("inputformat"):
        _text(cursor)
        cursor.expect("outputformat")
        _text(cursor)
        return
    _word(cursor)


_DELIMITERS = frozenset(
    {"as", "by", "collection", "defined", "escaped", "fields", "items", "keys", "lines", "map", "null", "terminated"}
)
_Rest = Callable[[Cursor], None]
_CLAUSES: tuple[tuple[tuple[str, ...], str, _Rest], ...] = (
    (("using",), "USING", _word),
    (("options",), "OPTIONS", _parenthesis),
    (("partitioned by",), "PARTITIONED BY", _parenthesis),
    (("clustered", "by"), "CLUSTERED BY", _buckets),
    (("cluster by",), "CLUSTER BY", _keys),
    (("skewed", "by"), "SKEWED BY", _skewed),
    (("location",), "LOCATION", _text),
    (("comment",), "COMMENT", _text),
    (("tblproperties",), "TBLPROPERTIES", _parenthesis),
    (("default", "collation"), "DEFAULT COLLATION", _collation),
    (("row", "format"), "ROW FORMAT", _row_format),
    (("stored", "as"), "STORED AS", _stored),
    (("with", "schema", "binding"), "WITH SCHEMA", lambda _: None),
    (("with", "schema", "compensation"), "WITH SCHEMA", lambda _: None),
    (("with", "schema", "evolution"), "WITH SCHEMA", lambda _: None),
    (("with", "schema", "type", "evolution"), "WITH SCHEMA", lambda _: None),
)
