"""A reader of the properties of tables and views: ``WITH ('key' = 'value', ...)``."""

from __future__ import annotations

from dataclasses import dataclass, field

from airflow_pipelines.program.connectors import Connector, ConnectorDirection
from airflow_pipelines.program.messages import COMPILATION_ERROR
from airflow_pipelines.program.names import display
from airflow_pipelines.program.source_text import twice
from airflow_pipelines.program.spans import Span
from airflow_pipelines.sql.program.declarations import PropertyText
from airflow_pipelines.sql.program.statements.parts import StatementParts
from airflow_pipelines.sql.syntax.connectors import PropertyString, parse_connectors
from airflow_pipelines.sql.syntax.cursor import Name

TABLE_PROPERTIES = frozenset({"append_only", "connectors", "expected_size", "materialized", "skip_unused_columns"})
"""The properties that a table may have."""
VIEW_PROPERTIES = frozenset({"connectors", "emit_final", "expected_size"})
"""The properties that a view may have."""
_BOOLEAN_PROPERTIES = frozenset({"append_only", "materialized", "skip_unused_columns"})


@dataclass(slots=True)
class Properties:
    """The properties of a WITH clause.

    :param texts: the properties by name
    :param connectors: the connectors that the property ``connectors`` declares
    """

    texts: dict[str, PropertyText] = field(default_factory=dict)
    connectors: list[Connector] = field(default_factory=list)

    def is_set(self, name: str) -> bool:
        """Return True if a boolean property is present and true."""
        return name in self.texts and self.texts[name].value.strip().lower() == "true"


def read_properties(parts: StatementParts, before: Properties, relation: Name, direction: ConnectorDirection) -> Properties:
    """Read ``WITH (...)``.

    :param parts: the statement, at WITH
    :param before: the properties of an earlier WITH of the statement, which must have none
    :param relation: the table or view that has the properties
    :param direction: the direction of its connectors
    :raises StatementError: if it cannot be read
    """
    cursor = parts.cursor
    if before.texts:
        raise cursor.failure("All properties stand in one WITH (...)", COMPILATION_ERROR)
    properties = Properties()
    cursor.expect("with", "(")
    while True:
        key = cursor.string("a property's name")
        cursor.expect("=")
        value = cursor.string("a property's value")
        key_span, value_span = cursor.span(key.start, key.end + 1), cursor.span(value.start, value.end + 1)
        if key.text in properties.texts:
            first = properties.texts[key.text].key_span
            parts.note(
                key_span,
                f"Property '{key.text}' of {display(relation.text)} is given twice: {twice(first, key_span)}",
            )
        else:
            text = PropertyString(cursor, value).text
            properties.texts[key.text] = PropertyText(text, key_span, value_span)
            _check_property(parts, key.text, text, key_span, value_span, direction)
            if key.text == "connectors":
                properties.connectors, messages = parse_connectors(cursor, value, relation.text, direction)
                parts.into.messages.extend(messages)
        if not cursor.take(","):
            break
    cursor.expect(")")
    return properties


def _check_property(
    parts: StatementParts, key: str, value: str, key_span: Span, value_span: Span, direction: ConnectorDirection
) -> None:
    known = TABLE_PROPERTIES if direction is ConnectorDirection.INPUT else VIEW_PROPERTIES
    if key not in known:
        parts.note(key_span, f"Unknown property '{key}'. Known properties: {', '.join(sorted(known))}")
    elif key in _BOOLEAN_PROPERTIES and value.strip().lower() not in {"true", "false"}:
        parts.note(value_span, f"Property '{key}' must be 'true' or 'false', not '{value}'")
