"""What is not allowed does not exist: wherever a program or request could write it, and whoever makes the session."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pyspark.errors import AnalysisException

from airflow_pipelines.compiler.compile_program import compile_program
from airflow_pipelines.engine.spark.sessions import LARGE_CONF, sibling
from airflow_pipelines.program.allowed_functions import ALLOWED_FUNCTIONS, NOT_ALLOWED
from airflow_pipelines.program.messages import ProgramErrors
from airflow_pipelines.program.source_text import SourceText

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from airflow_pipelines.engine.spark.sessions import SparkSessions

pytestmark = pytest.mark.core

HOME = "'java.lang.System', 'getenv', 'HOME'"


@pytest.mark.parametrize(
    "call",
    [
        f"java_method({HOME})",
        f"JAVA_METHOD({HOME})",
        f"`java_method`({HOME})",
        f"reflect({HOME})",
        f"try_reflect({HOME})",
        f"builtin.reflect({HOME})",
        f"system.builtin.reflect({HOME})",
        "from_xml('<a/>', 'b INT', map('rowValidationXSDPath', '/etc/passwd'))",
        "schema_of_xml('<a/>')",
        "from_avro(X'00', '\"int\"')",
    ],
)
def test_sessions_do_not_know_what_is_not_allowed(sessions: SparkSessions, call: str) -> None:
    for session in (sessions.small, sessions.narrow, sessions.large, sibling(sessions.small, LARGE_CONF)):
        with pytest.raises(AnalysisException, match=r"UNRESOLVED_ROUTINE|REQUIRES_SINGLE_PART_NAMESPACE"):
            session.sql(f"SELECT {call}")


def test_table_functions_are_checked_too(sessions: SparkSessions) -> None:
    with pytest.raises(AnalysisException, match="UNRESOLVABLE_TABLE_VALUED_FUNCTION"):
        sessions.small.sql("SELECT * FROM python_worker_logs()")
    assert sessions.small.sql("SELECT * FROM range(3)").count() == 3


def test_each_function_of_spark_is_allowed_or_not(spark: SparkSession) -> None:
    """A new release of Spark brings functions that somebody has to look at first."""
    names = [row.function.rpartition(".")[2] for row in spark.sql("SHOW SYSTEM FUNCTIONS").collect()]
    # CASE is a word of the grammar, which Spark lists with its functions.
    known = {name for name in names if name.isidentifier()} - {"case"}
    assert known - ALLOWED_FUNCTIONS - NOT_ALLOWED.keys() == set()
    assert not ALLOWED_FUNCTIONS & NOT_ALLOWED.keys()


@pytest.mark.parametrize(
    ("program", "at", "says"),
    [
        (
            "create table t (a varchar default Java_Method('java.lang.System', 'getenv', 'HOME'))",
            "Java_Method",
            "calls Java by name",
        ),
        ("create table t (a varchar default upper(`reflect`('java.lang.System', 'getenv', 'HOME')))", "`reflect`", "calls Java"),
        ("create table t (a varchar default (select transform('x') using 'id'))", "(select transform('x') using 'id')", "a query"),
        ("create table t (a int default 1 + (select 2))", "1 + (select 2)", "cannot have a query"),
        (
            "create table t (a bigint lateness length(java_method('java.lang.System', 'getenv', 'HOME')))",
            "java_method",
            "calls Java",
        ),
        (
            "create function f(x varchar) returns varchar as reflect('java.lang.System', 'getenv', x);"
            "create table t (a varchar); create view v as select f(a) as b from t",
            "reflect",
            "calls Java by name",
        ),
        ("create table t (a varchar); create view v as select from_xml(a, 'b int') as b from t", "from_xml", "files of the host"),
    ],
)
def test_every_expression_of_a_program_is_checked(sessions: SparkSessions, program: str, at: str, says: str) -> None:
    with pytest.raises(ProgramErrors) as raised:
        compile_program(program, sessions)
    (message,) = raised.value.messages
    assert message.span is not None
    assert SourceText(program).slice(message.span) == at
    assert says in message.message
