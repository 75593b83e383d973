"""The checks of the declarations of a program's connectors."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping

from airflow_pipelines.compiler.compilation import error_message
from airflow_pipelines.program.connectors import Connector
from airflow_pipelines.program.messages import ProgramMessage
from airflow_pipelines.program.source_text import SourceText
from airflow_pipelines.program.spans import Span
from airflow_pipelines.rows.schema import RelationSchema

ConnectorCheck = Callable[[Connector, RelationSchema], None]
"""A function that raises ValueError if a connector's declaration is wrong, with a message for the user that names the connector.

If the error has an attribute ``word``, this is the wrong string of the declaration.
"""


def connector_messages(
    source: SourceText, connectors: Iterable[Connector], schemas: Mapping[str, RelationSchema], check: ConnectorCheck | None
) -> list[ProgramMessage]:
    """Check the declarations of connectors.

    :param source: the program's text
    :param connectors: the declared connectors
    :param schemas: the schemas of the relations without errors
    :param check: checks one declaration; None to check nothing
    :returns: the errors, each at its place
    """
    messages = []
    for connector in connectors if check is not None else ():
        schema = schemas.get(connector.relation)
        # A relation without a schema has an error itself, which is noted already.
        if check is not None and schema is not None:
            try:
                check(connector, schema)
            except ValueError as failure:
                text = str(failure)
                span = _find_place(source, connector.span, getattr(failure, "word", None))
                messages.append(error_message(source, span, text[:1].upper() + text[1:]))
    return messages


def _find_place(source: SourceText, span: Span | None, word: str | None) -> Span | None:
    """Return the place of a JSON string within a declaration, or the whole declaration unless the string occurs exactly once."""
    if span is None or word is None:
        return span
    written, declaration = json.dumps(word, ensure_ascii=False), source.slice(span)
    if declaration.count(written) != 1:
        return span
    start = source.offset(span.start_line, span.start_column) + declaration.index(written)
    return source.span(start, start + len(written))
