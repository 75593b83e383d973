"""Checks the declarations of a program's connectors."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping

from airflow_pipelines.compiler.compilation import error_message
from airflow_pipelines.program.connectors import Connector
from airflow_pipelines.program.messages import ProgramMessage
from airflow_pipelines.program.places import Span
from airflow_pipelines.program.source_text import SourceText
from airflow_pipelines.rows.schema import RelationSchema

ConnectorCheck = Callable[[Connector, RelationSchema], None]
"""Raises ValueError when a connector's declaration is wrong, with a message for the user that names the connector.

Where the error has an attribute ``word``, that is the string of the declaration that is wrong."""


def connector_messages(
    source: SourceText, connectors: Iterable[Connector], schemas: Mapping[str, RelationSchema], check: ConnectorCheck | None
) -> list[ProgramMessage]:
    """Check the declarations of connectors.

    :param source: the program's text
    :param connectors: the declared connectors
    :param schemas: the schemas of the relations that are right themselves
    :param check: checks one declaration; without it nothing is wrong
    :returns: the errors, each at its place
    """
    messages = []
    for connector in connectors if check is not None else ():
        schema = schemas.get(connector.relation)
        # A relation without a schema is wrong itself, and its error is noted already.
        if check is not None and schema is not None:
            try:
                check(connector, schema)
            except ValueError as failure:
                text = str(failure)
                span = _place_of(source, connector.span, getattr(failure, "word", None))
                messages.append(error_message(source, span, text[:1].upper() + text[1:]))
    return messages


def _place_of(source: SourceText, span: Span | None, word: str | None) -> Span | None:
    """The place of a JSON string within a declaration; the whole declaration when it is not there, or more than once."""
    if span is None or word is None:
        return span
    written, declaration = json.dumps(word, ensure_ascii=False), source.slice(span)
    if declaration.count(written) != 1:
        return span
    start = source.offset(span.start_line, span.start_column) + declaration.index(written)
    return source.span(start, start + len(written))
