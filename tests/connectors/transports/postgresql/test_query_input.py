"""Reading a query: values of all types, the end, what was interrupted, and what goes wrong."""

from __future__ import annotations

import datetime as dt
import threading
import time
from dataclasses import replace
from decimal import Decimal
from urllib.parse import quote

import pytest

from airflow_pipelines.connectors.base import ConnectorFailure, InputTransport, TransientConnectorFailure
from airflow_pipelines.rows.formats import variant
from airflow_pipelines.rows.schema import RelationSchema
from airflow_pipelines.rows.types import ColumnType
from tests.connectors.relations import col, relation
from tests.connectors.transports.postgresql.sources import errors, opened, read_all, rows
from tests.fixtures.postgresql import PASSWORD, Database

pytestmark = pytest.mark.core

ONE = relation(col("id", "BIGINT", null=False), col("name", "VARCHAR"))
SCALARS = {
    "b": ("BOOLEAN", "bool", "true", True),
    "i16": ("SMALLINT", "int2", "'-32768'", -32768),
    "i32": ("INTEGER", "int4", "7", 7),
    "i64": ("BIGINT", "int8", "9223372036854775807", 2**63 - 1),
    "wide": ("BIGINT", "int2", "3", 3),
    "narrow": ("TINYINT", "int8", "127", 127),
    "unsigned": ("UTINYINT", "int4", "255", 255),
    "r": ("REAL", "float4", "0.5", 0.5),
    "f": ("DOUBLE", "float8", "0.1", 0.1),
    "f4": ("DOUBLE", "float4", "0.1", 0.1),
    "whole": ("BIGINT", "numeric", "12", 12),
    "s": ("VARCHAR", "text", "E'tab\\tline\\n\"é\"'", 'tab\tline\n"é"'),
    "empty": ("VARCHAR", "text", "''", ""),
    "padded": ("VARCHAR", "char(3)", "'a'", "a  "),
    "blank": ("VARCHAR", "varchar(9)", "'a '", "a "),
    "kind": ("VARCHAR", "mood", "'sad'", "sad"),
    "address": ("VARCHAR", "inet", "'10.0.0.1/8'", "10.0.0.1/8"),
    "small": ("INTEGER", "positive", "5", 5),
    "d": ("DATE", "date", "'2024-02-29'", dt.date(2024, 2, 29)),
    "t": ("TIME", "time", "'23:59:59.000001'", dt.time(23, 59, 59, 1)),
    "ts": ("TIMESTAMP", "timestamp", "'2024-01-02 03:04:05.678'", dt.datetime(2024, 1, 2, 3, 4, 5, 678000)),
    "tz": ("TIMESTAMP_TZ", "timestamptz", "'2024-01-02 03:04:05+02'", dt.datetime(2024, 1, 2, 1, 4, 5, tzinfo=dt.UTC)),
    "local": ("TIMESTAMP", "timestamptz", "'2024-01-02 03:04:05-02:30'", dt.datetime(2024, 1, 2, 5, 34, 5)),
    "u": ("UUID", "uuid", "'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
    "bytes": ("VARBINARY", "bytea", "'\\x00ff'", b"\x00\xff"),
    "length": ("INTERVAL_DAY_TO_SECOND", "interval", "'1 day 02:30:00.5'", dt.timedelta(days=1, hours=2, minutes=30, seconds=0.5)),
    "months": ("INTERVAL_YEAR_TO_MONTH", "interval", "'1 year 3 months'", 15),
    "text_of_json": ("VARCHAR", "jsonb", """'{"a": [1]}'""", '{"a": [1]}'),
}
TYPES = ["CREATE TYPE mood AS ENUM ('sad', 'ok')", "CREATE DOMAIN positive AS int CHECK (VALUE > 0)"]


def query(database: Database, schema: RelationSchema, text: str, position: object = None) -> InputTransport:
    return opened(schema, "postgres_input", position, uri=database.url, query=text)


def test_scalars_are_read_as_json_would_be(database: Database) -> None:
    database.execute(*TYPES)
    schema = relation(*(col(name, kind) for name, (kind, *_) in SCALARS.items()))
    values = ", ".join(f"{literal}::{source} AS {name}" for name, (_, source, literal, _) in SCALARS.items())
    nulls = ", ".join(f"NULL::{source} AS {name}" for name, (_, source, *_) in SCALARS.items())
    text = f"SELECT 1 AS n, {values} UNION ALL SELECT 2, {nulls} ORDER BY n"
    wanted = [{name: value for name, (*_, value) in SCALARS.items()}, dict.fromkeys(SCALARS)]
    read = read_all(query(database, schema, text))
    assert [{name: row[name] for name in SCALARS} for row in rows(*read)] == wanted
    # Row by row it is the same.
    odd = relation(*schema.columns, col("odd", "INTEGER"))
    read = read_all(
        query(database, odd, f"SELECT q.*, n AS odd FROM ({text}) AS q UNION ALL SELECT q.*, 2^40 FROM ({text}) AS q WHERE n = 2")
    )
    assert [{name: row[name] for name in SCALARS} for row in rows(*read)] == wanted
    assert len(errors(*read)) == 1


def test_decimals_are_exact_and_rounded_as_json_is(database: Database) -> None:
    schema = relation(col("d", "DECIMAL", precision=6, scale=2), col("n", "INTEGER"))
    text = "SELECT * FROM (VALUES (1, 1234.50), (2, -0.005), (3, 99999.99), (4, 'NaN'::numeric), (5, NULL)) AS r (n, d)"
    read = read_all(query(database, schema, text))
    wanted = [(1, Decimal("1234.50")), (2, Decimal("-0.01")), (5, None)]
    assert [(row["n"], row["d"]) for row in rows(*read)] == wanted
    assert read[0].num_parse_errors == 2
    assert errors(*read)[0] == "row 2: column 'd': 99999.99 is out of range for DECIMAL(6,2)"
    assert errors(*read)[1] == "row 3: column 'd': NaN is not a finite number"


def test_nested_values(database: Database) -> None:
    database.execute("CREATE TYPE point3 AS (x int, label text, at timestamptz)")
    point = ("x", ColumnType("INTEGER")), ("label", ColumnType("VARCHAR")), ("at", ColumnType("TIMESTAMP_TZ"))
    schema = relation(
        col("texts", "ARRAY", component=ColumnType("VARCHAR")),
        col("matrix", "ARRAY", component=ColumnType("ARRAY", component=ColumnType("INTEGER"))),
        col("point", "STRUCT", fields=point),
        col("points", "ARRAY", component=ColumnType("STRUCT", fields=point)),
        col("doc", "VARIANT"),
        col("from_json", "MAP", key=ColumnType("VARCHAR", False), value=ColumnType("INTEGER")),
        col("list", "VARIANT"),
    )
    text = """SELECT ARRAY['a', NULL, 'NULL', '', 'b"{},\\ c'] AS texts, '{{1,2},{3,NULL}}'::int[] AS matrix,
        ROW(1, 'a "b", (c)', '2024-01-01 00:00:00+00')::point3 AS point, ARRAY[ROW(2, '', NULL)::point3, NULL] AS points,
        '{"k": [1.5, null, "x"]}'::jsonb AS doc, '{"one": 1}'::json AS from_json, ARRAY[1, NULL]::int8[] AS list"""
    [row] = rows(*read_all(query(database, schema, text)))
    assert row["texts"] == ["a", None, "NULL", "", 'b"{},\\ c']
    assert row["matrix"] == [[1, 2], [3, None]]
    assert row["point"] == {"x": 1, "label": 'a "b", (c)', "at": dt.datetime(2024, 1, 1, tzinfo=dt.UTC)}
    assert row["points"] == [{"x": 2, "label": "", "at": None}, None]
    assert variant.to_json(row["doc"]) == '{"k":[1.5,null,"x"]}'
    assert row["from_json"] == [("one", 1)]
    assert variant.to_json(row["list"]) == "[1,null]"


MISFITS = [
    ("'[1,3)'::int4range", "VARCHAR", "int4range cannot be read"),
    ("'{[1,3)}'::int4multirange", "VARIANT", "int4multirange cannot be read"),
    ("ARRAY['[2024-01-01,)'::daterange]", "VARIANT", "does not fit|daterange cannot be read"),
    ("'x'::text", "INTEGER", "text (texts) does not fit INTEGER"),
    ("1", "BOOLEAN", "integer (numbers) does not fit BOOLEAN"),
    ("now()", "DATE", "timestamp with time zone (timestamps) does not fit DATE"),
    ("point(1, 2)", "DOUBLE", "point (values with a text of their own) does not fit DOUBLE"),
]


def test_types_that_do_not_fit_are_named(database: Database) -> None:
    for source, kind, reason in MISFITS:
        with pytest.raises(ConnectorFailure) as failure:
            query(database, relation(col("v", kind)), f"SELECT {source} AS v")
        assert "column 'v'" in str(failure.value)
        assert any(part in str(failure.value) for part in reason.split("|"))
        assert "column::text" in str(failure.value)


def test_moments_that_no_calendar_has_are_malformed_rows(database: Database) -> None:
    odd = ("'infinity'::timestamp", "'-infinity'", "'0044-03-15 BC'", "'20000-01-01'")
    text = f"SELECT * FROM (VALUES ({'), ('.join(odd)}), ('2024-01-01')) AS v (v)"
    read = read_all(query(database, relation(col("v", "TIMESTAMP")), text))
    assert [row["v"] for row in rows(*read)] == [dt.datetime(2024, 1, 1)]
    assert read[0].num_parse_errors == len(odd)
    assert "is not a timestamp" in errors(*read)[0]


def test_rows_come_in_pieces_and_then_the_end(database: Database) -> None:
    text = "SELECT i AS id, 'n' || i AS name FROM generate_series(1, 50) AS i;  "
    for max_records in (1, 7, 10_000):
        read = read_all(query(database, ONE, text), max_records)
        assert [(row["id"], row["name"]) for row in rows(*read)] == [(i, f"n{i}") for i in range(1, 51)]
        assert read[-1].position == {"rows": 50, "done": True}
        assert sum(chunk.size_bytes for chunk in read) > 0
    [again] = read_all(query(database, ONE, "SELECT 1/0 AS id", {"rows": 50, "done": True}))
    assert again.end_of_input
    assert again.records == 0


def test_an_interrupted_query_is_asked_again_where_rows_have_a_key(database: Database) -> None:
    text = "SELECT i AS id FROM generate_series(1, 5) AS i"
    source = query(database, ONE, text)
    first = source.read(2, 1)
    source.close()
    assert first is not None
    assert first.position == {"rows": 2, "done": False}
    with pytest.raises(ConnectorFailure, match="interrupted after 2 rows, and asking it again would bring them twice"):
        query(database, ONE, text, first.position)
    keyed = replace(ONE, primary_key=("id",))
    assert [row["id"] for row in rows(*read_all(query(database, keyed, text, first.position)))] == [1, 2, 3, 4, 5]


def test_names_defaults_and_what_is_missing(database: Database) -> None:
    schema = relation(col("id", "BIGINT", null=False), col("Name", "VARCHAR", quoted=True), col("v", "INTEGER", default="7"))
    assert rows(*read_all(query(database, schema, 'SELECT 1 AS "ID", \'x\' AS "Name", 2 AS "name", 3 AS other'))) == [
        {"id": 1, "Name": "x", "v": 7, "__op": 1}
    ]
    with pytest.raises(ConnectorFailure, match=r"there is no column 'id', which is NOT NULL and has no DEFAULT. Its columns: x"):
        query(database, schema, "SELECT 1 AS x")
    with pytest.raises(ConnectorFailure, match="columns 'id' and 'ID' both are column 'id'"):
        query(database, schema, 'SELECT 1 AS id, 2 AS "ID"')


def test_null_where_none_may_be_is_a_malformed_row(database: Database) -> None:
    read = read_all(query(database, ONE, "SELECT NULLIF(i, 2) AS id FROM generate_series(1, 3) AS i"))
    assert [row["id"] for row in rows(*read)] == [1, 3]
    assert errors(*read) == ["row 1: column 'id' is NOT NULL, but the value is null"]


def test_a_query_with_a_comment_at_its_end_and_common_tables(database: Database) -> None:
    read = read_all(query(database, ONE, "WITH t AS (SELECT 1 AS id) SELECT * FROM t -- the end"))
    assert [row["id"] for row in rows(*read)] == [1]


def failure_of(database: Database, uri: str, text: str = "SELECT 1 AS id") -> ConnectorFailure:
    with pytest.raises(ConnectorFailure) as failure:
        read_all(opened(ONE, "postgres_input", uri=uri, query=text))
    assert "s3cret" not in str(failure.value)
    assert "s3cret" not in repr(failure.value.__cause__)
    return failure.value


def test_what_goes_wrong_is_said_without_the_password(database: Database, password_user: str) -> None:
    port = database.server.port
    refused = failure_of(database, f"postgresql://{password_user}:s3cret@127.0.0.1:{port}/{database.name}")
    assert "password authentication failed" in str(refused)
    assert "Check user and password in 'uri'" in str(refused)
    assert not isinstance(refused, TransientConnectorFailure)
    absent = failure_of(database, f"postgresql://pipelines:s3cret@127.0.0.1:{port}/nowhere")
    assert 'database "nowhere" does not exist' in str(absent)
    unreachable = failure_of(database, "postgresql://pipelines:s3cret@127.0.0.1:1/db")
    assert isinstance(unreachable, TransientConnectorFailure)
    assert "Check host and port" in str(unreachable)
    assert "127.0.0.1:1/db" in str(unreachable)
    assert "no connection URI" not in str(failure_of(database, "postgresql://me:s3cret@[/x"))
    missing = failure_of(database, database.url, "SELECT id FROM orders")
    assert 'relation "orders" does not exist' in str(missing)
    assert not isinstance(missing, TransientConnectorFailure)
    guarded = f"postgresql://{password_user}:{quote(PASSWORD)}@127.0.0.1:{port}/{database.name}"
    database.execute("CREATE TABLE secret (id int8)")
    assert "permission denied for table secret. Give the user in 'uri' the right" in str(
        failure_of(database, guarded, "SELECT * FROM secret")
    )
    assert "division by zero" in str(failure_of(database, database.url, "SELECT 1 / (i - 3) AS id FROM generate_series(1, 5) AS i"))


def test_a_lost_connection_is_transient(database: Database) -> None:
    source = query(database, ONE, "SELECT i AS id, repeat('x', 1000) AS name FROM generate_series(1, 200000) AS i")
    assert source.read(10, 1) is not None
    terminate = (
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )
    database.execute(terminate)
    with pytest.raises(TransientConnectorFailure, match="cannot read the query"):
        read_all(source)
    source.close()


def test_closing_ends_a_query_that_is_running(database: Database) -> None:
    source = query(database, ONE, "SELECT 1 AS id FROM pg_sleep(60)")
    failures: list[BaseException] = []

    def read() -> None:
        try:
            source.read(10, 1)
        except ConnectorFailure as error:
            failures.append(error)

    thread = threading.Thread(target=read)
    begun = time.monotonic()
    thread.start()
    while not database.rows(
        "SELECT 1 FROM pg_stat_activity WHERE query LIKE '%pg_sleep%' AND pid <> pg_backend_pid() AND state = 'active'"
    ):
        assert time.monotonic() < begun + 20
    source.close()
    thread.join(20)
    assert not thread.is_alive()
    assert time.monotonic() < begun + 30
    assert len(failures) == 1
