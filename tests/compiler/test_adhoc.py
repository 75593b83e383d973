from __future__ import annotations

import datetime
from concurrent.futures import ThreadPoolExecutor

import pytest
from pyspark.errors import PySparkException

from airflow_pipelines.compiler.adhoc import AdhocError, AdhocResult, run_adhoc
from airflow_pipelines.engine.spark.sessions import SparkSessions
from airflow_pipelines.program.messages import ProgramErrors
from airflow_pipelines.program.source_text import SourceText
from tests.engine.programs import Running

PROGRAM = """
create table item (id bigint not null primary key, name varchar, price decimal(6,2) default 1.5);
create table log (line varchar, level int);
create table short (a varchar(2), b char(5));
create table seen (x int) with ('materialized' = 'true');
create table once (x int) with ('materialized' = 'true', 'append_only' = 'true');
create table stay (id bigint, at timestamp default localtimestamp) with ('materialized' = 'true');
create table place (id bigint primary key, r row(x int, y int array)) with ('materialized' = 'true');
create view plain as select line from log;
create materialized view cheap as select id, price from item where price < 10;
"""


@pytest.fixture(scope="module")
def running(sessions: SparkSessions) -> Running:
    running = Running(PROGRAM, sessions)
    running.step(running.changes("seen", (1,), (1,), (None,), (2,)), running.changes("item", (1, "a", None), (2, "b", None)))
    return running


def _rows(running: Running, sql: str) -> list[tuple[object, ...]]:
    frame = run_adhoc(running.circuit, sql).frame
    assert frame is not None
    return [tuple(row) for row in frame.collect()]


def test_a_query_reads_materialized_relations_with_its_order(running: Running) -> None:
    assert _rows(running, "SELECT x, count(*) AS n FROM Seen GROUP BY x ORDER BY x DESC") == [(2, 1), (1, 2), (None, 1)]
    assert _rows(running, "WITH seen AS (SELECT max(x) AS m FROM seen) SELECT * FROM seen") == [(2,)]


@pytest.mark.core
def test_a_non_materialized_relation_is_refused_with_a_hint(running: Running) -> None:
    for sql in ("SELECT * FROM plain", "SELECT * FROM log", "INSERT INTO seen SELECT level FROM log"):
        with pytest.raises(AdhocError, match=r"Tried to SELECT from a non-materialized source.*(?i:materialized)"):
            run_adhoc(running.circuit, sql)
    with pytest.raises(AdhocError, match="nowhere does not exist; there are: cheap"):
        run_adhoc(running.circuit, "SELECT * FROM nowhere")


@pytest.mark.core
def test_inserts_cast_fill_defaults_and_check(running: Running) -> None:
    sql = "INSERT INTO item (name, id) VALUES ('x', '7'), ('y', '8'); INSERT INTO log VALUES ('l', 1)"
    result = run_adhoc(running.circuit, sql)
    assert result.frame is None
    assert result.count == 3
    item, log = result.changes
    assert [tuple(map(str, row.values())) for row in item.rows.to_pylist()] == [("7", "x", "1.50", "1"), ("8", "y", "1.50", "1")]
    assert log.table == "log"
    (short,) = run_adhoc(running.circuit, "INSERT INTO short VALUES ('abc', 'abc')").changes
    assert [short.rows[name].to_pylist() for name in ("a", "b")] == [["ab"], ["abc"]]
    with pytest.raises(AdhocError, match="id of table item must not be NULL"):
        run_adhoc(running.circuit, "INSERT INTO item (name) VALUES ('x')")
    with pytest.raises(AdhocError, match="gives 1 values for 2 columns"):
        run_adhoc(running.circuit, "INSERT INTO log VALUES ('x')")
    with pytest.raises(AdhocError, match="has no column nope"):
        run_adhoc(running.circuit, "INSERT INTO log (nope) VALUES ('x')")
    with pytest.raises(AdhocError, match="is a view"):
        run_adhoc(running.circuit, "INSERT INTO cheap VALUES (1, 2)")
    with pytest.raises(PySparkException, match="CAST_INVALID_INPUT"):
        run_adhoc(running.circuit, "INSERT INTO log VALUES ('l', 'many')")


@pytest.mark.core
def test_rows_within_rows(running: Running) -> None:
    for _ in range(2):
        result = run_adhoc(running.circuit, "INSERT INTO place VALUES (1, NULL), (2, ROW(1, ARRAY(1)))")
        assert not running.step(*result.changes).rejected
    assert _rows(running, "SELECT id, r IS NULL AS n, r.x FROM place ORDER BY id") == [(1, True, None), (2, False, 1)]
    with pytest.raises(AdhocError, match=r"^r\.x of table place must not be NULL$"):
        run_adhoc(running.circuit, "INSERT INTO place SELECT id, ROW(CAST(price AS INT), ARRAY(1)) FROM item")


@pytest.mark.core
def test_deletes_give_matching_rows_with_their_multiplicity(running: Running) -> None:
    (change,) = run_adhoc(running.circuit, "DELETE FROM seen WHERE x = 1").changes
    assert change.rows.to_pylist() == [{"x": 1, "__op": -1}] * 2
    (change,) = run_adhoc(running.circuit, "DELETE FROM item WHERE id IN (SELECT x FROM seen)").changes
    assert [row["id"] for row in change.rows.to_pylist()] == [1, 2]
    assert run_adhoc(running.circuit, "DELETE FROM seen WHERE x > 5").count == 0
    with pytest.raises(AdhocError, match="append-only"):
        run_adhoc(running.circuit, "DELETE FROM once")


@pytest.mark.core
@pytest.mark.parametrize(
    ("sql", "at", "says"),
    [
        ("SELECT window_start, Nope FROM TABLE(TUMBLE(TABLE stay, DESCRIPTOR(at), INTERVAL 1 HOUR))", "Nope", "nope"),
        ("SELECT x FROM seen s ASOF JOIN stay t MATCH_CONDITION (s.x = t.id) ON s.x = t.id", "s.x = t.id", "must compare"),
        ("INSERT INTO log VALUES ('a', 1);\nINSERT INTO log SELECT arg_max(X, X), nope FROM seen", "nope", "nope"),
        ("DELETE FROM seen WHERE x = 1 AND Nope > 2", "Nope", "nope"),
        ("DELETE FROM seen WHERE x > (SELECT count_if(nope > 1) FROM seen)", "nope", "nope"),
        ("SELECT upper(x, 1), now() FROM seen", "upper(x, 1)", "parameters"),
    ],
)
def test_errors_have_places_in_the_request(running: Running, sql: str, at: str, says: str) -> None:
    with pytest.raises(ProgramErrors) as caught:
        run_adhoc(running.circuit, sql)
    (message,) = caught.value.messages
    assert says in message.message.lower()
    assert message.span is not None
    assert SourceText(sql).slice(message.span) == at


@pytest.mark.core
def test_the_time_is_the_pipelines_also_in_changes(running: Running) -> None:
    now = datetime.datetime(2026, 5, 6, 7, 8, 9, 10)
    micros = int(now.replace(tzinfo=datetime.UTC).timestamp()) * 1_000_000 + now.microsecond

    def asked(sql: str) -> AdhocResult:
        return run_adhoc(running.circuit, sql, lambda: micros)

    frame = asked("SELECT NOW(), current_date AS d, Current_Timestamp, x AS now FROM seen WHERE x = 2").frame
    assert frame is not None
    assert frame.columns == ["NOW()", "d", "Current_Timestamp", "now"]
    assert [tuple(row) for row in frame.collect()] == [(now, now.date(), now, 2)]
    (change,) = asked("INSERT INTO stay (id) VALUES (year(now()))").changes
    assert change.rows.to_pylist() == [{"id": 2026, "at": now, "__op": 1}]
    assert asked("DELETE FROM seen WHERE x = month(current_date) - 4").count == 2


@pytest.mark.core
def test_columns_without_a_name_are_called_as_the_request_has_them(running: Running) -> None:
    def columns(sql: str) -> list[str]:
        frame = run_adhoc(running.circuit, sql).frame
        assert frame is not None
        return frame.columns

    common = "WITH c AS (SELECT arg_max(x, x) AS m FROM seen)"
    grouped = columns(f"{common} SELECT arg_max(m, m), stddev(m), m + 1, ROW_NUMBER() OVER (ORDER BY 1) FROM c GROUP BY m")
    assert grouped == ["arg_max(m, m)", "stddev(m)", "(m + 1)", "ROW_NUMBER() OVER (ORDER BY 1)"]
    assert columns("SELECT ARG_MIN(x, x) OVER (), s.*, Now() FROM seen s") == ["ARG_MIN(x, x) OVER ()", "x", "Now()"]
    assert columns("SELECT DISTINCT Now(), 2 * x AS y FROM seen") == ["Now()", "y"]
    assert columns("SELECT s.*, t.*, COUNTIF(t.x > 1) OVER () AS n FROM seen s JOIN seen t ON s.x = t.x") == ["x", "x", "n"]


@pytest.mark.core
def test_requests_run_side_by_side(running: Running) -> None:
    queries = ["SELECT sum(x) FROM seen", "SELECT count(*) FROM item"] * 3
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda sql: _rows(running, sql), queries)) == [[(4,)], [(2,)]] * 3
