"""What the process of a stream program is told of the relations that it makes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pytest

from airflow_pipelines.compiler.stream_relations import output_tables
from airflow_pipelines.engine.program import Program
from airflow_pipelines.host.streams.stream_worker import arrow_schemas
from airflow_pipelines.program.streams import RelationOutput, StreamProgram
from airflow_pipelines.rows.schema import RelationSchema
from airflow_pipelines.streams.worker.columns import MisfitError, column_of
from airflow_pipelines.streams.worker.declared_types import stored_by


@pytest.mark.parametrize(
    ("sql_type", "fits", "kept", "refused"),
    [
        ("VARCHAR(3)", "abc", "abc", "abcd"),
        ("VARCHAR", "abcd", "abcd", 5),
        ("CHAR(3)", "a", "a", "abcd"),
        ("UUID", "0B9B2C4E-5A0F-4C0E-9D55-0C4D9C1F7A11", "0b9b2c4e-5a0f-4c0e-9d55-0c4d9c1f7a11", "12"),
        ("TINYINT UNSIGNED", 255, 255, 256),
        ("VARCHAR(2) ARRAY", ["ab", None], ["ab", None], ["abc"]),
        ("ROW(a CHAR(2), b UUID)", {"a": "x"}, {"a": "x", "b": None}, {"b": "12"}),
        ("MAP<VARCHAR(1), BINARY(2)>", {"a": b"x"}, [("a", b"x\0")], {"ab": b"x"}),
    ],
)
def test_columns_take_what_their_sql_types_take(sql_type: str, fits: Any, kept: Any, refused: Any) -> None:
    streams = StreamProgram("p.py", b"", (), outputs=(RelationOutput("out", "log", (("c", sql_type),)),))
    (table,) = output_tables(streams)
    program = cast(Program, SimpleNamespace(streams=streams, schemas={"log": RelationSchema("log", table.columns)}))
    (column,) = pa.ipc.read_schema(pa.py_buffer(arrow_schemas(program)["out"]))
    assert column_of([fits, None], column, stored_by(column)).to_pylist() == [kept, None]
    with pytest.raises(MisfitError):
        column_of([refused], column, stored_by(column))
