"""The ``connectors`` property: a JSON array inside a SQL string, with the position of every error in the program's text."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlglot.tokenizer_core import Token

from airflow_pipelines.contract import strict_json
from airflow_pipelines.program.connectors import Connector, ConnectorDirection
from airflow_pipelines.program.messages import COMPILATION_ERROR, ProgramMessage
from airflow_pipelines.program.names import display
from airflow_pipelines.program.source_text import twice
from airflow_pipelines.program.spans import Span
from airflow_pipelines.sql.syntax.cursor import Cursor

_SPACE = re.compile(r"[ \t\r\n]*")


@dataclass(frozen=True, slots=True)
class _Element:
    value: Any
    span: Span


class PropertyString:
    """The contents of a single-quoted string and the position of each character; only ``''`` is an escape here, not a backslash."""

    def __init__(self, cursor: Cursor, token: Token) -> None:
        written = cursor.source.text[token.start + 1 : token.end]
        offsets: list[int] = []
        place = 0
        while place < len(written):
            offsets.append(token.start + 1 + place)
            place += 2 if written.startswith("''", place) else 1
        self._offsets = [*offsets, token.end]
        self._cursor = cursor
        self.text = written.replace("''", "'")

    def span(self, start: int, end: int) -> Span:
        """Return the span in the program's text of ``text[start:end]``."""
        last = max(start, end - 1)
        return self._cursor.span(self._offsets[min(start, len(self.text))], self._offsets[min(last, len(self.text))] + 1)


def parse_connectors(
    cursor: Cursor, token: Token, relation: str, direction: ConnectorDirection
) -> tuple[list[Connector], list[ProgramMessage]]:
    """Return the connectors that a property declares, and the errors of those that are left out.

    :param cursor: the statement, for errors
    :param token: the property's value
    :param relation: the canonical name of the table or view
    :param direction: INPUT for a table's connectors, OUTPUT for a view's
    """
    string = PropertyString(cursor, token)
    connectors: list[Connector] = []
    messages: list[ProgramMessage] = []
    places: dict[str, Span] = {}

    def complain(span: Span, text: str) -> None:
        messages.append(cursor.source.message(span, COMPILATION_ERROR, text))

    try:
        elements = _read_array(string)
    except _Misplaced as failure:
        complain(string.span(failure.start, failure.end), str(failure))
        return [], messages
    for index, element in enumerate(elements):
        try:
            connector = _read_connector(element, index, relation, direction)
        except ValueError as failure:
            complain(element.span, f"Connector {index} of {display(relation)}: {failure}")
            continue
        if connector.name in places:
            first = places[connector.name]
            title = f"Connector {connector.name!r} of {display(relation)}"
            complain(element.span, f"{title} is declared twice: {twice(first, element.span)}")
            continue
        places[connector.name] = element.span
        connectors.append(connector)
    return connectors, messages


class _BadConnector(ValueError):
    """The error that one element of the array is no connector."""


class _Misplaced(ValueError):
    """The error that the JSON cannot be read; ``start`` and ``end`` are offsets in the string."""

    def __init__(self, start: int, end: int, message: str) -> None:
        super().__init__(message)
        self.start = start
        self.end = end


def _read_array(string: PropertyString) -> list[_Element]:
    text = string.text
    decoder = json.JSONDecoder(object_pairs_hook=_object, parse_constant=_refuse_constant)
    place = _skip(text, 0)
    if not text.startswith("[", place):
        raise _Misplaced(place, len(text), "The connectors must be a JSON array of objects: '[{...}, ...]'")
    elements: list[_Element] = []
    place = _skip(text, place + 1)
    if text.startswith("]", place):
        place += 1
    else:
        while True:
            try:
                value, end = decoder.raw_decode(text, place)
                strict_json.check(value)
            except json.JSONDecodeError as failure:
                raise _Misplaced(failure.pos, failure.pos + 1, f"The connectors are not valid JSON: {failure.msg}") from failure
            except RecursionError as failure:
                what = f"what begins here is more than {strict_json.MAX_DEPTH} levels deep"
                raise _Misplaced(place, place + 1, f"The connectors are not valid JSON: {what}") from failure
            except ValueError as failure:
                raise _Misplaced(place, place + 1, f"The connectors are not valid JSON: {failure}") from failure
            elements.append(_Element(value, string.span(place, end)))
            place = _skip(text, end)
            if text.startswith(",", place):
                place = _skip(text, place + 1)
                continue
            if text.startswith("]", place):
                place += 1
                break
            raise _Misplaced(place, place + 1, "The connectors are not valid JSON: expected ',' or ']'")
    rest = _skip(text, place)
    if rest != len(text):
        raise _Misplaced(rest, len(text), "The connectors are not valid JSON: text after the end of the array")
    return elements


def _skip(text: str, place: int) -> int:
    space = _SPACE.match(text, place)
    return space.end() if space else place


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    keys = [key for key, _ in pairs]
    for key in keys:
        if keys.count(key) > 1:
            raise ValueError(f"key {key!r} is given twice in one object")
    return dict(pairs)


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a JSON value")


def _read_connector(element: _Element, index: int, relation: str, direction: ConnectorDirection) -> Connector:
    value = element.value
    if not isinstance(value, dict):
        raise _BadConnector(f"must be a JSON object, not {_kind(value)}")
    rest = dict(value)
    name = rest.pop("name", None)
    if name is None:
        name = f"unnamed-{index}"
    if not isinstance(name, str) or not name:
        raise _BadConnector("'name' must be a string that is not empty")
    if "transport" not in rest:
        raise ValueError('\'transport\' is missing: {"transport": {"name": ..., "config": {...}}}')
    transport, transport_config = _read_part("transport", rest.pop("transport"))
    format_name: str | None = None
    format_config: Mapping[str, Any] = {}
    if rest.get("format") is not None:
        format_name, format_config = _read_part("format", rest["format"])
    rest.pop("format", None)
    return Connector(relation, name, direction, transport, transport_config, format_name, format_config, rest, element.span)


def _read_part(what: str, value: Any) -> tuple[str, Mapping[str, Any]]:
    if not isinstance(value, dict) or not isinstance(value.get("name"), str):
        raise _BadConnector(f"'{what}' must be an object with a 'name' that is a string")
    config = value.get("config")
    if config is None:
        config = {}
    if not isinstance(config, dict):
        raise _BadConnector(f"'config' of '{what}' must be an object, not {_kind(config)}")
    unknown = sorted(set(value) - {"name", "config"})
    if unknown:
        raise ValueError(f"'{what}' has the unknown key {unknown[0]!r}; known keys: config, name")
    return value["name"], config


def _kind(value: Any) -> str:
    if value is None:
        return "null"
    return {bool: "a boolean", str: "a string", int: "a number", float: "a number", list: "an array"}.get(type(value), "an object")
