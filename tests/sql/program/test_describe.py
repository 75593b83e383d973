from __future__ import annotations

import json

from airflow_pipelines.rows.schema import Column
from airflow_pipelines.rows.types import ColumnType
from airflow_pipelines.sql.program.describe import program_info
from airflow_pipelines.sql.program.parser import parse_program

TEXT = """create table t (
  id int primary key, "Name" varchar(5) default 'x', r row(a int, b map<int, date> null)
) with ('connectors' = '[{"name": "c", "labels": ["l"],
  "transport": {"name": "file_input", "config": {"path": "/x"}}, "format": {"name": "csv"}}]');
create local view hidden as select id from t;
create materialized view "V" with ('connectors' = '[{"transport": {"name": "null_output"}}]') as select * from hidden"""


def test_program_info() -> None:
    columns = {"hidden": (Column("id", ColumnType("INTEGER")),), "V": (Column("id", ColumnType("INTEGER", nullable=False)),)}
    info = program_info(parse_program(TEXT), columns).to_wire()
    json.dumps(info)
    assert set(info) == {"schema", "udf_stubs", "input_connectors", "output_connectors", "dataflow"}
    (table,) = info["schema"]["inputs"]
    assert set(table) == {"name", "case_sensitive", "fields", "materialized", "primary_key", "properties"}
    assert (table["name"], table["materialized"], table["primary_key"]) == ("t", True, ["id"])
    identifier, name, row = table["fields"]
    assert identifier["columntype"]["nullable"] is False
    assert name == {
        "name": "Name",
        "case_sensitive": True,
        "columntype": {
            "type": "VARCHAR",
            "nullable": True,
            "precision": 5,
            "scale": None,
            "component": None,
            "fields": None,
            "key": None,
            "value": None,
        },
        "default": "'x'",
        "lateness": None,
        "watermark": None,
        "unused": False,
    }
    kind = row["columntype"]
    assert kind["type"] == "STRUCT"
    assert kind["fields"][0]["columntype"]["nullable"] is False
    assert kind["fields"][1]["columntype"]["value"]["type"] == "DATE"
    place = table["properties"]["connectors"]["key_position"]
    assert place == {"start_line_number": 3, "start_column": 9, "end_line_number": 3, "end_column": 20}
    view, system = info["schema"]["outputs"]
    assert (view["name"], view["case_sensitive"], view["materialized"], view["primary_key"]) == ("V", True, True, None)
    assert system["name"] == "error_view"
    assert info["input_connectors"] == {
        "t.c": {
            "stream": "t",
            "transport": {"name": "file_input", "config": {"path": "/x"}},
            "format": {"name": "csv", "config": {}},
            "labels": ["l"],
            "start_after": None,
            "paused": False,
        }
    }
    assert info["output_connectors"]["V.unnamed-0"]["format"] is None
