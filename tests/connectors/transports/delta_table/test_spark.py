"""Tables that we write, read by Delta's own library in a real Spark, and tables that it writes, read by us."""

from __future__ import annotations

import datetime as dt
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from airflow_pipelines.connectors.base import ConnectorFailure
from airflow_pipelines.rows.types import ColumnType
from tests.connectors.relations import SCALARS, col, relation
from tests.connectors.transports.delta_table.tables import PEOPLE, changes, merged, output
from tests.connectors.transports.delta_table.test_input import contents, read_all, seen, source
from tools.maven import NoJarsError, jars

Sql = Callable[[str], list[dict[str, Any]]]
PROGRAM = Path(__file__).with_name("spark_with_delta.py")
ORDERS = relation(
    col("id", "BIGINT"),
    col("name", "VARCHAR"),
    col("at", "TIMESTAMP_TZ"),
    col("amount", "DECIMAL", precision=10, scale=2),
    col("tags", "ARRAY", component=ColumnType("VARCHAR")),
    name="t",
)


@pytest.fixture(scope="module")
def sql(processes: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sql]:
    """Evaluates a statement."""
    try:
        folder = jars("delta")
    except NoJarsError as error:
        pytest.skip(f"Delta's library cannot be had: {error}")
    log = tmp_path_factory.mktemp("spark") / "log"
    with log.open("w") as errors:
        process = subprocess.Popen(
            [sys.executable, str(PROGRAM), str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            cwd=log.parent,
        )
    assert process.stdin is not None
    assert process.stdout is not None
    requests, answers = process.stdin, process.stdout

    def evaluate(statement: str) -> list[dict[str, Any]]:
        requests.write(json.dumps(statement) + "\n")
        requests.flush()
        for line in answers:
            if line.startswith("answer "):
                answer = json.loads(line.removeprefix("answer "))
                assert "error" not in answer, answer["error"][0]
                rows: list[dict[str, Any]] = answer["rows"]
                return rows
        raise AssertionError(log.read_text()[-3000:])

    yield evaluate
    requests.close()
    try:
        process.wait(60)
    finally:
        process.kill()


def test_spark_reads_what_is_merged(tmp_path: Path, sql: Sql) -> None:
    sink = merged(tmp_path, key=("id",))
    sink.write(1, changes((1, "a", 1), (2, None, 1), (3, "c", 1), key=("id",)))
    sink.write(2, changes((1, "a", -1), (1, "A", 1), (2, None, -1), key=("id",)))
    assert sql(f"SELECT * FROM delta.`{tmp_path}` ORDER BY id") == [{"id": 1, "name": "A"}, {"id": 3, "name": "c"}]
    history = sql(f"DESCRIBE HISTORY delta.`{tmp_path}`")
    assert [entry["operation"] for entry in history][:2] == ["MERGE", "WRITE"]
    # Maintenance by Spark, and then ours again.
    sql(f"OPTIMIZE delta.`{tmp_path}`")
    sql(f"VACUUM delta.`{tmp_path}` RETAIN 0 HOURS")
    sink.write(3, changes((3, "c", -1), (4, "d", 1), key=("id",)))
    assert sql(f"SELECT id FROM delta.`{tmp_path}` ORDER BY id") == [{"id": 1}, {"id": 4}]
    again = merged(tmp_path, key=("id",), resumed=True)
    assert again.committed_step() == 3


def test_spark_merges_a_change_log(tmp_path: Path, sql: Sql) -> None:
    sink = output(tmp_path / "log", key=("id",))
    sink.write(1, changes((1, "a", 1), (2, "b", 1), (3, "c", 1), key=("id",)))
    sink.write(2, changes((1, "a", -1), (1, "A", 1), (2, "b", -1), key=("id",)))
    sql(f"CREATE TABLE delta.`{tmp_path}/copy` (id BIGINT, name STRING) USING delta")
    sql(
        f"MERGE INTO delta.`{tmp_path}/copy` t USING (SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY id "
        f"ORDER BY __feldera_ts DESC) AS n FROM delta.`{tmp_path}/log`) WHERE n = 1) s ON t.id = s.id "
        "WHEN MATCHED AND s.__feldera_op = 'd' THEN DELETE "
        "WHEN MATCHED THEN UPDATE SET name = s.name "
        "WHEN NOT MATCHED AND s.__feldera_op <> 'd' THEN INSERT (id, name) VALUES (s.id, s.name)"
    )
    assert sql(f"SELECT * FROM delta.`{tmp_path}/copy` ORDER BY id") == [{"id": 1, "name": "A"}, {"id": 3, "name": "c"}]


def test_spark_reads_all_types(tmp_path: Path, sql: Sql) -> None:
    at = dt.datetime(2024, 1, 2, 3, 4, 5, 6)
    row = (True, 1, 2, 3, 4, 1.5, 2.5, 1, "s", "abc", at.date(), at.time(), at, at.replace(tzinfo=dt.UTC), "u", 1)
    output(tmp_path, of=SCALARS).write(1, changes(row, of=SCALARS))
    (read,) = sql(f"SELECT * FROM delta.`{tmp_path}`")
    assert (read["d"], read["t"], read["ts"], read["tz"]) == (
        "2024-01-02",
        "03:04:05.000006",
        "2024-01-02 03:04:05.000006",
        "2024-01-02 03:04:05.000006",
    )
    kinds = {field["col_name"]: field["data_type"] for field in sql(f"DESCRIBE delta.`{tmp_path}`")}
    assert (kinds["ts"], kinds["tz"], kinds["dec"], kinds["i8"]) == ("timestamp_ntz", "timestamp", "decimal(12,3)", "tinyint")


def compare(path: Path, sql: Sql, of: Any, last: int) -> None:
    """Each version that Spark can read has the same rows for us, however it is reached."""
    names = ", ".join(of.column_names)
    for version in range(last + 1):
        wanted = Counter(json.dumps(row, default=str) for row in sql(f"SELECT {names} FROM delta.`{path}` VERSION AS OF {version}"))
        for mode, options in (
            ("snapshot", {"version": version}),
            ("snapshot_and_follow", {"version": 0, "end_version": version}),
            ("snapshot_and_follow", {"version": version // 2, "end_version": version}),
        ):
            found = contents(read_all(source(path, mode, of=of, **options), 97))
            shown = [dict(zip(of.column_names, map(plain, row), strict=True)) for row in found.elements()]
            assert Counter(json.dumps(row, default=str) for row in shown) == wanted, (mode, options)


def plain(value: Any) -> Any:
    """A value as it is in Spark's rows: times without their zone."""
    return value.replace(tzinfo=None) if isinstance(value, dt.datetime) else value


def hashable(of: Any) -> Any:
    """The columns without those whose values cannot be counted."""
    return relation(*(column for column in of.columns if not column.type.depth), name="t")


def test_deletion_vectors(tmp_path: Path, sql: Sql) -> None:
    table = f"delta.`{tmp_path}`"
    columns = "id BIGINT, name STRING, at TIMESTAMP, amount DECIMAL(10, 2), tags ARRAY<STRING>"
    sql(f"CREATE TABLE {table} ({columns}) USING delta TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')")
    for first in (0, 1_000):
        sql(
            f"INSERT INTO {table} SELECT id, concat('n', id), timestamp'2024-01-01' + make_interval(0, 0, 0, 0, 0, 0, id), "
            f"id * 1.25, array('a', concat('b', id)) FROM range({first}, {first + 1_000})"
        )
    sql(f"DELETE FROM {table} WHERE id % 2 = 0")
    sql(f"DELETE FROM {table} WHERE id % 10 = 3 OR id BETWEEN 1200 AND 1400")
    sql(f"UPDATE {table} SET name = 'changed' WHERE id IN (5, 1501)")
    # The tags come along.
    (row,) = seen(read_all(source(tmp_path, of=ORDERS, filter="id = 1501")))
    assert row[:2] == (1501, "changed")
    assert row[4] == ["a", "b1501"]
    # What a deletion vector takes back comes again.
    sql(f"RESTORE TABLE {table} TO VERSION AS OF 2")
    sql(f"OPTIMIZE {table}")
    compare(tmp_path, sql, hashable(ORDERS), sql(f"DESCRIBE HISTORY {table} LIMIT 1")[0]["version"])


def test_a_change_data_feed(tmp_path: Path, sql: Sql) -> None:
    table = f"delta.`{tmp_path}`"
    people = relation(*PEOPLE.columns, col("region", "VARCHAR"), name="t")
    sql(
        f"CREATE TABLE {table} (id BIGINT, name STRING, region STRING) USING delta PARTITIONED BY (region) "
        "TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')"
    )
    sql(f"INSERT INTO {table} SELECT id, concat('n', id), if(id % 2 = 0, 'e u', if(id % 3 = 0, NULL, 'us/1')) FROM range(100)")
    sql(f"UPDATE {table} SET region = 'us/1', name = 'moved' WHERE id IN (10, 9)")
    sql(
        f"MERGE INTO {table} t USING (SELECT id, 'merged' AS name, 'us/1' AS region FROM range(95, 105)) s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET name = s.name WHEN NOT MATCHED THEN INSERT *"
    )
    sql(f"DELETE FROM {table} WHERE region IS NULL")
    sql(f"OPTIMIZE {table}")
    last = sql(f"DESCRIBE HISTORY {table} LIMIT 1")[0]["version"]
    compare(tmp_path, sql, people, last)
    moved = seen(read_all(source(tmp_path, "follow", of=people, version=1, end_version=2)))
    assert [row[-1] for row in moved] == [-1, -1, 1, 1]


def test_files_written_anew(tmp_path: Path, sql: Sql) -> None:
    table = f"delta.`{tmp_path}`"
    sql(
        f"CREATE TABLE {table} (id BIGINT, name STRING, at TIMESTAMP) USING delta "
        "TBLPROPERTIES ('delta.enableDeletionVectors' = 'false')"
    )
    sql("SET spark.sql.parquet.outputTimestampType = INT96")
    sql(f"INSERT INTO {table} SELECT id, 'n', timestamp'1890-01-01 00:00:00.123456' + make_interval(id) FROM range(100)")
    sql("SET spark.sql.parquet.outputTimestampType = TIMESTAMP_MICROS")
    sql(f"UPDATE {table} SET name = 'x' WHERE id = 5")
    sql(f"ALTER TABLE {table} ADD COLUMN more INT")
    sql(f"INSERT INTO {table} VALUES (200, 'y', timestamp'2024-01-01', 7)")
    last = sql(f"DESCRIBE HISTORY {table} LIMIT 1")[0]["version"]
    timed = relation(*PEOPLE.columns, col("at", "TIMESTAMP_TZ"), name="t")
    compare(tmp_path, sql, timed, last)
    changed = seen(read_all(source(tmp_path, "follow", of=PEOPLE, version=1, end_version=2)))
    assert changed == [(5, "n", -1), (5, "x", 1)]


def test_columns_under_other_names_are_refused(tmp_path: Path, sql: Sql) -> None:
    sql(f"CREATE TABLE delta.`{tmp_path}` (id BIGINT) USING delta TBLPROPERTIES ('delta.columnMapping.mode' = 'name')")
    with pytest.raises(ConnectorFailure, match=r"cannot be read here: columns under other names in files"):
        source(tmp_path)
