"""The rewrite of UNNEST ... WITH ORDINALITY: the elements of arrays and maps, with their positions from 1.

The number of columns depends on the type of the argument. In the text alone, the number of names tells arrays from maps; rows in
arrays become columns once Spark has determined that they are rows.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from airflow_pipelines.program.names import quote
from airflow_pipelines.sql.plan.analyzer import Analyzer
from airflow_pipelines.sql.rewrite.clauses import alias, split
from airflow_pipelines.sql.rewrite.constructs import BEFORE_RELATION
from airflow_pipelines.sql.rewrite.probe import select_at, types_in
from airflow_pipelines.sql.rewrite.refused import CallRefused
from airflow_pipelines.sql.rewrite.token_walker import CallTokens, TokenWalker, mentions
from airflow_pipelines.sql.syntax.dialect import DIALECT, parse_query
from airflow_pipelines.sql.syntax.edits import Edit, Edited

_HEAD = "(__e, __i) -> STRUCT("
_PLACE = "__i + 1"
_ELEMENT = f"{_HEAD}__e, {_PLACE})"
_ENTRY = f"{_HEAD}__e.key, __e.value, {_PLACE})"
_NAMED_ELEMENT = f"{_HEAD}__e AS col, {_PLACE} AS ordinality)"
_NAMED_ENTRY = f"{_HEAD}__e.key AS key, __e.value AS value, {_PLACE} AS ordinality)"


def ordinality_edits(walker: TokenWalker) -> Iterator[Edit]:
    """Yield the edits of ``UNNEST(x) WITH ORDINALITY AS t(c, place)``: the elements or entries of x, with positions from 1.

    The elements are those of an array, the entries those of a map. Two names are those of an array's elements and their positions.
    For more, and without names, see :func:`with_columns_of`.

    :param walker: the query
    :raises CallRefused: if there is a name for one column only
    """
    for call in walker.calls():
        with_places = walker.word(call.close + 1) == "with" and walker.word(call.close + 2) == "ordinality"
        if call.name == "unnest" and with_places and call.arguments and walker.word(call.at - 1) in BEFORE_RELATION:
            yield from _edit_unnest(walker, call)


def _edit_unnest(walker: TokenWalker, call: CallTokens) -> Iterator[Edit]:
    named = alias(walker, call.close + 3)
    opening = None if named is None else named + 1
    close = walker.closing(opening) if opening is not None and walker.word(opening) == "(" else None
    names = 0 if close is None or opening is None else len(split(walker, (opening + 1, close)))
    if names == 1 and opening is not None and close is not None:
        message = "WITH ORDINALITY adds the places as a last column: name it, too, such as t(element, place)"
        raise CallRefused(walker.start(opening), walker.end(close), message)
    lateral = "" if walker.word(call.at - 1) in {"from", "lateral"} else "LATERAL "
    made = f"INLINE({_number_elements([walker.piece(*argument) for argument in call.arguments], names)})"
    yield Edit(call.start, walker.end(call.close + 2), f"{lateral}{made}{' AS unnest' if named is None else ''}")


def _number_elements(values: list[str], names: int) -> str:
    """Return an array of rows: the elements of the values, and the positions.

    :param values: Spark SQL of the unnested values
    :param names: the number of columns that have names; 0 if none has
    """
    if len(values) > 1:
        # COALESCE leaves the field without a name, so that its name is the number of the array.
        fields = ", ".join(f"__e.`{at}`" for at in range(len(values)))
        zipped = ", ".join(f"COALESCE({value})" for value in values)
        return f"TRANSFORM(ARRAYS_ZIP({zipped}), {_HEAD}{fields}, {_PLACE} AS ordinality))"
    if names == 0:
        return f"TRANSFORM({values[0]}, {_NAMED_ELEMENT})"
    return f"TRANSFORM({values[0]}, {_ELEMENT})" if names == 2 else f"TRANSFORM(MAP_ENTRIES({values[0]}), {_ENTRY})"


def name_fields_of_elements(query: Edited, analyzer: Analyzer) -> Edited:
    """Make columns of the fields of rows if an array of rows is unnested with positions and without names.

    :param query: translated text that parses
    :param analyzer: the analyzer, which knows the relations that the query reads
    """
    if not mentions(query.text, _NAMED_ELEMENT.lower()):
        return query
    tree, walker = parse_query(query.text), TokenWalker(query.text)
    edits = []
    for call in walker.calls():
        if call.name == "TRANSFORM" and len(call.arguments) == 2 and walker.piece(*call.arguments[1]) == _NAMED_ELEMENT:
            value = walker.piece(*call.arguments[0])
            kinds = types_in(select_at(tree, *call.arguments[0]) or exp.Select(), [value], analyzer)
            fields = _fields(kinds[0]) if kinds is not None else None
            if fields is not None:
                edits.append(Edit(*call.arguments[1], _row(fields, named=True)))
    return query.edit(edits)


def with_columns_of(kind: str, text: str, start: int, end: int) -> Edit | str | None:
    """Unnest with positions a value whose type, as Spark reports it, differs from the one that the number of names suggests.

    :param kind: its type
    :param text: Spark SQL, with the result of :func:`ordinality_edits`
    :param start: the offset of the call that Spark refuses
    :param end: the offset behind it
    :returns: the edit, or a sentence that explains why there is none; None if nothing is unnested with positions there
    """
    walker = TokenWalker(text)
    calls = [call for call in walker.calls() if call.name == "TRANSFORM" and call.start <= start and end <= call.end]
    for call in reversed(calls):
        value, how = (walker.piece(*argument) for argument in call.arguments) if len(call.arguments) == 2 else ("", "")
        fields, is_map = _fields(kind), kind.lower().startswith("map<")
        if how == _ENTRY and not is_map:
            array = value.removeprefix("MAP_ENTRIES(").removesuffix(")")
            if fields is None:
                return f"UNNEST of {kind} WITH ORDINALITY gives two columns, the element and its place: name these two"
            return Edit(call.start, call.end, f"TRANSFORM({array}, {_row(fields, named=False)})")
        if how == _NAMED_ELEMENT and is_map:
            return Edit(call.start, call.end, f"TRANSFORM(MAP_ENTRIES({value}), {_NAMED_ENTRY})")
        if how == _ELEMENT and is_map:
            return f"UNNEST of {kind} WITH ORDINALITY gives three columns, the key, the value and the place: name these three"
    return None


def _fields(kind: str) -> list[str] | None:
    """Return the names of the fields of an array's rows, or None if its elements are no rows."""
    if not kind.lower().startswith("array<struct<"):
        return None
    return [field.name for field in exp.DataType.build(kind, dialect=DIALECT).expressions[0].expressions] or None


def _row(fields: list[str], *, named: bool) -> str:
    """Return a lambda function that makes a row of an element's fields and its position."""
    columns = [f"__e.{quote(field)}" for field in fields]
    if named:
        columns = [f"{column} AS {quote(field)}" for column, field in zip(columns, fields, strict=True)]
    return f"{_HEAD}{', '.join([*columns, f'{_PLACE} AS ordinality' if named else _PLACE])})"
