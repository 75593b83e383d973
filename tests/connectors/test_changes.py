"""Changes in the order of outputs: the same from memory and from files, in tables of bounded size."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from airflow_pipelines.connectors import changes
from airflow_pipelines.connectors.changes import ChangesInMemory, StreamedChanges, changes_of
from airflow_pipelines.engine.batch import Batch
from airflow_pipelines.engine.spark.collecting import collected
from airflow_pipelines.engine.spark.sessions import SparkSessions
from airflow_pipelines.engine.storage.batch_store import BatchStore

pytestmark = pytest.mark.core

MIXED = """
SELECT id % 11 AS k, CAST(id AS STRING) AS s, IF(id % 3 = 0, NULL, interval '7' month) AS m,
  parse_json(CAST(id % 5 AS STRING)) AS v, map('a', id) AS mm, named_struct('x', id % 7) AS st, array(id % 2) AS l,
  CAST(IF(id % 4 = 0, -2, 1) AS BIGINT) AS __weight
FROM range(0, 60, 1, 5)
"""


@pytest.mark.rest
def test_what_is_in_files_comes_as_what_is_in_memory(sessions: SparkSessions, tmp_path: Path) -> None:
    frame = sessions.large.sql(MIXED)
    in_memory = Batch.in_memory(frame.schema, collected(frame))
    store = BatchStore(tmp_path)
    in_files = Batch.in_files(frame.schema, 60, store.write(in_memory.table), store, insert_only=False)
    columns = [name for name in frame.columns if name != "__weight"]
    one, other = (changes_of(batch, columns, sessions.large) for batch in (in_memory, in_files))
    assert (type(one), type(other)) == (ChangesInMemory, StreamedChanges)
    rows = [row for table in one.tables() for row in table.to_pylist()]
    assert [row for table in other.tables() for row in table.to_pylist()] == rows
    assert one.count() == other.count() == len(rows) == 75
    assert [row["__weight"] for row in rows] == [-1] * 30 + [1] * 45
    assert {row["m"] for row in rows} == {None, "P7M"}


def test_updates_in_files_are_those_in_memory(sessions: SparkSessions, tmp_path: Path) -> None:
    weight = "CAST(IF(id % 2 = 0, -1, IF(id % 5 = 0, 3, 1)) AS BIGINT)"
    frame = sessions.large.sql(f"SELECT array(char(id DIV 2 + 65)) AS k, id AS v, {weight} AS __weight FROM range(60)")
    in_memory = Batch.in_memory(frame.schema, collected(frame))
    store = BatchStore(tmp_path)
    in_files = Batch.in_files(frame.schema, 60, store.write(in_memory.table), store, insert_only=False)
    one, other = (changes_of(batch, ["k", "v"], sessions.large, ["k"]) for batch in (in_memory, in_files))
    rows = [row for table in one.tables() for row in table.to_pylist()]
    assert [row for table in other.tables() for row in table.to_pylist()] == rows
    assert sum(row["__update"] for row in rows) == 48, "of 30 keys 24 have one row that goes and one that comes"
    assert all(row["v"] % 2 == 0 for row in rows if row["__weight"] < 0)


@pytest.mark.parametrize("weights", [[1, -1, 1, 1, -1, 1, 1], [3, -30, 1, 2, -1, 25, 1]])
def test_no_table_has_more_rows_than_allowed(monkeypatch: pytest.MonkeyPatch, weights: list[int]) -> None:
    monkeypatch.setattr(changes, "ROWS_AT_ONCE", 4)
    delta = ChangesInMemory(pa.table({"x": range(7), "__weight": weights}))
    tables = list(delta.tables())
    assert max(table.num_rows for table in tables) <= 4
    assert sum(table.num_rows for table in tables) == delta.count() == sum(map(abs, weights))
    # An output may have to write them again.
    assert list(delta.tables()) == tables
