"""DDL as Spark's users write it: what has a meaning here is taken, what has none is warned of once."""

from __future__ import annotations

import pytest

from airflow_pipelines.program.messages import NO_EFFECT, ProgramErrors
from airflow_pipelines.program.relations import ViewKind
from airflow_pipelines.sql.program.parser import parse_program
from airflow_pipelines.sql.syntax.ignored_clauses import REASONS

PASTED = """CREATE OR REPLACE EXTERNAL TABLE IF NOT EXISTS events (
    id LONG NOT NULL COMMENT 'the key',
    kind STRING COLLATE UTF8_BINARY DEFAULT 'none' COMMENT "double quotes, too",
    payload STRUCT<a: INT COMMENT 'inside', b: STRING>,
    CONSTRAINT pk PRIMARY KEY (id) NOT ENFORCED RELY
)
USING parquet
OPTIONS ('compression' = 'snappy', mergeSchema true)
PARTITIONED BY (day DATE, kind)
CLUSTERED BY (id) SORTED BY (kind DESC) INTO 8 BUCKETS
ROW FORMAT DELIMITED FIELDS TERMINATED BY ',' LINES TERMINATED BY '\\n' NULL DEFINED AS ''
STORED AS INPUTFORMAT 'a.b.C' OUTPUTFORMAT 'a.b.D'
LOCATION 's3://bucket/events'
COMMENT 'all of them'
TBLPROPERTIES ('delta.appendOnly' = 'true')
DEFAULT COLLATION UTF8_BINARY
WITH ('materialized' = 'true');
CREATE OR REPLACE GLOBAL TEMPORARY VIEW IF NOT EXISTS recent (id COMMENT 'a', kind) COMMENT 'b' TBLPROPERTIES ('x' = 'y')
    WITH SCHEMA BINDING AS SELECT id, kind FROM events;
CREATE TEMP VIEW other AS SELECT 1 AS one;
CREATE OR REPLACE TEMPORARY FUNCTION twice(x INT COMMENT 'a number') RETURNS INT LANGUAGE SQL COMMENT 'doubles' RETURN x * 2;
"""


def test_pasted_statements_are_taken() -> None:
    program = parse_program(PASTED)
    table = program.tables["events"]
    assert [(column.name, str(column.type)) for column in table.columns] == [
        ("id", "BIGINT"),
        ("kind", "VARCHAR"),
        ("payload", "ROW(a INTEGER, b VARCHAR)"),
        ("day", "DATE"),
    ]
    assert table.columns[1].default == "'none'"
    assert table.primary_key == ("id",)
    assert table.materialized
    assert (program.views["recent"].kind, program.views["recent"].column_names) == (ViewKind.LOCAL, ("id", "kind"))
    assert program.views["other"].kind is ViewKind.LOCAL
    assert program.definitions.functions["twice"].body == "x * 2"


def test_each_kind_of_clause_is_warned_of_once_per_statement() -> None:
    warnings = parse_program(PASTED).warnings
    assert all(warning.warning and warning.error_type == NO_EFFECT and warning.to_wire()["warning"] for warning in warnings)
    told = [(warning.span.start_line if warning.span else 0, warning.message.split(" has no effect")[0]) for warning in warnings]
    assert told == [
        (1, "OR REPLACE"), (1, "EXTERNAL"), (1, "IF NOT EXISTS"), (2, "COMMENT"), (5, "NOT ENFORCED"), (5, "RELY"), (7, "USING"),
        (8, "OPTIONS"), (9, "PARTITIONED BY"), (10, "CLUSTERED BY"), (11, "ROW FORMAT"), (12, "STORED AS"), (13, "LOCATION"),
        (15, "TBLPROPERTIES"), (16, "DEFAULT COLLATION"),
        (18, "OR REPLACE"), (18, "GLOBAL"), (18, "IF NOT EXISTS"), (18, "COMMENT"), (18, "TBLPROPERTIES"), (19, "WITH SCHEMA"),
        (21, "OR REPLACE"), (21, "COMMENT"),
    ]  # fmt: skip
    using = next(warning for warning in warnings if warning.message.startswith("USING"))
    assert using.snippet.splitlines()[-1].strip() == "^" * len("USING parquet")
    more = "CREATE TABLE t (a INT) CLUSTER BY (a) SKEWED BY (a) ON ((1), (2)) STORED AS DIRECTORIES STORED AS orc"
    more += "; SET FELDERA_X = 1"
    told_more = {warning.message.split(" has no effect")[0] for warning in parse_program(more).warnings}
    assert told_more | {clause for _, clause in told} == set(REASONS)


def test_plain_statements_have_no_warnings() -> None:
    text = """CREATE TABLE t (a INT PRIMARY KEY, f FLOAT, z TIMESTAMP_LTZ);
    CREATE TEMP VIEW v AS SELECT comment FROM (SELECT a AS comment FROM t)"""
    assert parse_program(text).warnings == ()


@pytest.mark.parametrize(
    ("text", "at", "says"),
    [
        ("CREATE TABLE t USING parquet AS SELECT 1 AS a", "USING", "Expected ("),
        ("CREATE TABLE t AS SELECT 1 AS a", "AS", "CREATE MATERIALIZED VIEW"),
        ("CREATE TABLE t (a INT) USING parquet AS SELECT 1 AS a", "AS", "CREATE MATERIALIZED VIEW"),
        ("CREATE TABLE t (a INT) LOCATION here", "here", "single quotes"),
        ("CREATE TABLE t (a INT) CLUSTERED BY (a)", ")", "Expected INTO"),
        ("CREATE TABLE t (a INT GENERATED ALWAYS AS (1))", "GENERATED", "in a view"),
        ("CREATE TABLE t (a STRING) DEFAULT COLLATION UNICODE", "UNICODE", "letter by letter"),
        ("CREATE TABLE t (a STRING COLLATE UNICODE_CI)", "UNICODE_CI", "letter by letter"),
        ("CREATE TABLE t (a INT) WITH ('materialized' = 'true') WITH ('append_only' = 'true')", "WITH", "one WITH"),
        ("CREATE TEMP VIEW v USING csv OPTIONS (path 'x')", "USING", "connector of a table"),
    ],
)
def test_what_cannot_be_taken_is_refused_at_its_place(text: str, at: str, says: str) -> None:
    with pytest.raises(ProgramErrors) as caught:
        parse_program(text)
    (message,) = caught.value.messages
    assert says in message.message
    assert message.span is not None
    assert at in text.splitlines()[message.span.start_line - 1][message.span.start_column - 1 :]
