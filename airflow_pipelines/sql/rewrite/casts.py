"""The rewrite of casts to types that Spark lacks, spells differently or does not check: named, unsigned and fixed-length types."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from airflow_pipelines.program.source_text import SourceText
from airflow_pipelines.rows.types import ColumnType
from airflow_pipelines.sql.rewrite.token_walker import TokenWalker
from airflow_pipelines.sql.syntax.column_types import parse_type
from airflow_pipelines.sql.syntax.cursor import Cursor, StatementError
from airflow_pipelines.sql.syntax.edits import Edit
from airflow_pipelines.sql.syntax.tokens import FoldedText

_CASTS: Mapping[str, bool] = {"cast": False, "try_cast": True, "safe_cast": True}
_SPELLINGS: Mapping[str, str] = {"integer": "int", "dec": "decimal", "numeric": "decimal"}
"""Other names that Spark accepts for a type."""
_UUID = "^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$"


def cast_text(value: str, kind: ColumnType, attempt: bool = False) -> str:
    """Return Spark SQL for ``CAST(value AS kind)``, with the checks that the type requires.

    :param value: Spark SQL of one expression; it is repeated if values have to be checked
    :param kind: the type to cast to
    :param attempt: True if a value that does not fit becomes NULL instead of an error
    """
    plain = f"{'TRY_CAST' if attempt else 'CAST'}({value} AS {spark_type(kind)})"
    if kind.is_unsigned_integer:
        _, most = kind.bounds
        failure = "NULL" if attempt else f"RAISE_ERROR(CONCAT({plain}, ' does not fit into {kind}'))"
        return f"CASE WHEN {plain} NOT BETWEEN 0 AND {most} THEN {failure} ELSE {plain} END"
    if kind.is_text and kind.is_padded:
        return f"RPAD({plain}, {kind.precision or 1}, ' ')"
    if kind.is_text and kind.precision is not None:
        return f"LEFT({plain}, {kind.precision})"
    if kind.is_binary and kind.precision is not None:
        return f"RPAD({plain}, {kind.precision}, X'00')" if kind.is_padded else f"SUBSTRING({plain}, 1, {kind.precision})"
    if kind.is_uuid:
        failure = "NULL" if attempt else f"RAISE_ERROR(CONCAT({plain}, ' is no UUID'))"
        return f"CASE WHEN {plain} NOT RLIKE '{_UUID}' THEN {failure} ELSE LOWER({plain}) END"
    return plain


def stored_text(value: str, kind: ColumnType) -> str:
    """Return Spark SQL for the value that a table's column stores: as a cast, except that CHAR is not padded with blanks.

    :param value: Spark SQL of one expression; it is repeated if values have to be checked
    :param kind: the type of the column
    """
    is_char = kind.is_text and kind.is_padded
    return cast_text(value, replace(kind, name="VARCHAR", precision=kind.precision or 1) if is_char else kind)


def spark_type(kind: ColumnType) -> str:
    """Return the type for a cast: nullable in all its parts, since Spark refuses casts to types that are not.

    :param kind: the type
    """
    return _relax(kind).spark_ddl()


def _relax(kind: ColumnType) -> ColumnType:
    return replace(
        kind,
        nullable=True,
        component=_relax(kind.component) if kind.component else None,
        fields=tuple((name, _relax(inner)) for name, inner in kind.fields) if kind.fields is not None else None,
        value=_relax(kind.value) if kind.value else None,
    )


def cast_edits(walker: TokenWalker, types: Mapping[str, ColumnType]) -> Iterator[Edit]:
    """Yield the edits that rewrite casts. Edits may be nested; inner ones must be applied first.

    :param walker: the query's tokens
    :param types: the program's own types
    """
    for call in walker.calls():
        # Angle brackets are not known here, so that the commas of MAP<k, v> and STRUCT<...> count as well.
        if call.name not in _CASTS or not call.arguments:
            continue
        split = _as(walker, call.at + 2, call.close)
        if split is None or split == call.at + 2:
            continue
        target = _type(walker, split + 1, types)
        if target is not None and target[1] == call.close:
            attempt = _CASTS[call.name]
            if call.name == "safe_cast" or _is_different(walker, split + 1, call.close, target[0]):
                value = walker.piece(walker.start(call.at + 2), walker.end(split - 1))
                yield Edit(call.start, call.end, cast_text(value, target[0], attempt))
        elif call.name == "safe_cast":
            yield Edit(walker.start(call.at), walker.end(call.at), "TRY_CAST")
    for at in range(1, len(walker.tokens)):
        if walker.word(at) != "::":
            continue
        first, target = walker.operand(at - 1), _type(walker, at + 1, types)
        if first is not None and target is not None and _is_different(walker, at + 1, target[1], target[0]):
            value = walker.piece(walker.start(first), walker.end(at - 1))
            yield Edit(walker.start(first), walker.end(target[1] - 1), cast_text(value, target[0]))


def constructor_edits(walker: TokenWalker, types: Mapping[str, ColumnType]) -> Iterator[Edit]:
    """Yield the edits that rewrite ``name(value, ...)`` of a program's ROW type to a cast of a ROW.

    :param walker: the query's tokens
    :param types: the program's own types, except those that share their name with a function
    """
    for call in walker.calls():
        kind = types.get(call.name)
        # In WITH name(columns) AS (...) and FROM t name(columns) the name is that of a relation.
        is_query = walker.word(call.close + 1) == "as" and walker.word(call.close + 2) == "("
        if kind is None or walker.follows_value(call.at) or is_query:
            continue
        if kind.fields is not None and len(call.arguments) == len(kind.fields):
            values = ", ".join(walker.piece(*argument) for argument in call.arguments)
            yield Edit(call.start, call.end, cast_text(f"STRUCT({values})", kind))


def _is_different(walker: TokenWalker, first: int, stop: int, kind: ColumnType) -> bool:
    """Return True if Spark would not read the type as it is written, or would not check it."""
    written = "".join(walker.word(at) or walker.piece(walker.start(at), walker.end(at)) for at in range(first, stop))
    for spelling, plain in _SPELLINGS.items():
        if written == spelling or written.startswith(f"{spelling}("):
            written = plain + written.removeprefix(spelling)
    return cast_text("v", kind) != f"CAST(v AS {spark_type(kind)})" or written != "".join(spark_type(kind).lower().split())


def _as(walker: TokenWalker, first: int, close: int) -> int | None:
    """Return the token AS between the value and the type."""
    depth = 0
    for at in range(first, close):
        word = walker.word(at)
        if word == "as" and depth == 0:
            return at
        depth += (word in {"(", "["}) - (word in {")", "]"})
    return None


def _type(walker: TokenWalker, first: int, types: Mapping[str, ColumnType]) -> tuple[ColumnType, int] | None:
    """Return the type that starts at token ``first`` and the token behind it.

    Return None if only Spark can read it, such as some intervals.
    """
    cursor = Cursor(FoldedText(SourceText(walker.text), walker.text, tuple(walker.tokens)), walker.tokens[first:], types)
    try:
        return parse_type(cursor), first + cursor.index
    except StatementError:
        return None
