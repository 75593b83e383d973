"""Finding the statements that declare the relations of a program."""

from __future__ import annotations

from airflow_pipelines.sql.program.statement_texts import statement_texts

PROGRAM = """-- the first
CREATE TABLE t (a INT); create type pair as (x int, y int);
CREATE VIEW "V; 1" AS
  SELECT ';' AS s -- not the end;
  FROM t;
CREATE LOCAL VIEW v AS SELECT * FROM t
"""


def test_each_relation_has_its_statement_as_it_was_written() -> None:
    assert statement_texts(PROGRAM) == {
        "t": "CREATE TABLE t (a INT)",
        "V; 1": "CREATE VIEW \"V; 1\" AS\n  SELECT ';' AS s -- not the end;\n  FROM t",
        "v": "CREATE LOCAL VIEW v AS SELECT * FROM t",
    }
