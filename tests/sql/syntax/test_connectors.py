"""Connectors in a program's text, and the places of what is wrong in them."""

from __future__ import annotations

import pytest

from airflow_pipelines.program.connectors import ConnectorDirection
from airflow_pipelines.program.source_text import SourceText
from airflow_pipelines.sql.program.parser import parse_program
from tests.sql.program.refusals import errors, the_error

CONNECTED = """create table t (a int) with (
  'connectors' = '[
    {"name": "it''s", "paused": true, "transport": {"name": "file_input", "config": {"path": "/ü/a''b \\" \\\\"}},
     "format": {"name": "csv", "config": {"headers": true}}},
    {"transport": {"name": "datagen"}}
  ]'
);
create view v with ('connectors' = '[{"transport": {"name": "null_output"}, "labels": ["x"]}]') as select * from t"""


def test_connectors() -> None:
    program = parse_program(CONNECTED)
    first, second = program.tables["t"].connectors
    assert (first.name, first.endpoint, first.direction) == ("it's", "t.it's", ConnectorDirection.INPUT)
    assert first.transport_config == {"path": "/ü/a'b \" \\"}
    assert (first.format, first.format_config, first.options) == ("csv", {"headers": True}, {"paused": True})
    assert second.endpoint == "t.unnamed-1"
    assert second.format is None
    (output,) = program.views["v"].connectors
    assert (output.endpoint, output.direction) == ("v.unnamed-0", ConnectorDirection.OUTPUT)
    assert output.options == {"labels": ["x"]}
    assert second.span is not None
    assert SourceText(CONNECTED).slice(second.span) == '{"transport": {"name": "datagen"}}'
    assert [connector.endpoint for connector in program.connectors()] == ["t.it's", "t.unnamed-1", "v.unnamed-0"]


@pytest.mark.parametrize(
    ("value", "at", "says"),
    [
        ('[{"transport": {"name": "a"},}]', "}", "not valid JSON"),
        ('[{"name": "it\'\'s", "x" 1}]', "1", "Expecting ':' delimiter"),
        ('{"transport": {"name": "a"}}', '{"transport": {"name": "a"}}', "JSON array"),
        ("[1]", "1", "must be a JSON object, not a number"),
        ('[{"name": "a"}]', '{"name": "a"}', "'transport' is missing"),
        ('[{"transport": "file"}]', '{"transport": "file"}', "'transport' must be an object"),
        ('[{"transport": {"name": "a", "conf": {}}}]', '{"transport": {"name": "a", "conf": {}}}', "known keys: config, name"),
        ('[{"transport": {"name": "a", "config": []}}]', '{"transport": {"name": "a", "config": []}}', "not an array"),
        ('[{"name": 1, "transport": {"name": "a"}}]', '{"name": 1, "transport": {"name": "a"}}', "'name' must be a string"),
        ('[{"a": 1, "a": 2}]', "{", "given twice"),
        ('[{"transport": {"name": "a"}}] x', "x", "after the end"),
        ("[", "'", "not valid JSON"),
        ('[{"a": NaN}]', "{", "NaN is not a JSON value"),
    ],
)
def test_connector_errors_have_a_place_in_the_program(value: str, at: str, says: str) -> None:
    text = f"create table t (a int) with ('materialized' = 'true',\r\n 'connectors' = '{value}')"
    (message,) = errors(text)
    assert message.span is not None
    assert says in message.message
    assert message.span.start_line == 2
    assert SourceText(text).slice(message.span) == at


def test_connector_names_declared_twice() -> None:
    value = '[{"name": "c", "transport": {"name": "a"}}, {"name": "c", "transport": {"name": "b"}}]'
    text = f"create table t (a int) with ('connectors' = '{value}')"
    message = the_error(text, '{"name": "c", "transport": {"name": "b"}}')
    assert "'c' of t is declared twice: first at line 1, column 47" in message


def test_local_views_have_no_connectors() -> None:
    value = '{"transport": {"name": "null_output"}}'
    assert "LOCAL" in the_error(f"create local view v with ('connectors' = '[{value}]') as select 1 as a", value)
