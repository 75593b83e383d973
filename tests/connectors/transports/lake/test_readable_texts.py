"""Rows with texts that are not UTF-8: tables and Parquet files have all others, and can be read by everybody."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from airflow_pipelines.common.references import NO_REFERENCES
from airflow_pipelines.connectors.base import ConnectorFailure, OutputTransport
from airflow_pipelines.connectors.changes import ChangesInMemory
from airflow_pipelines.connectors.common_options import OnError
from airflow_pipelines.connectors.definition import PipelineReference
from airflow_pipelines.connectors.left_out import LeftOutRows
from airflow_pipelines.connectors.opening import open_output
from airflow_pipelines.connectors.transports.lake.readable_texts import (
    UnreadableTextError,
    check_texts,
    drop_unreadable,
    drop_unreadable_deletes,
)
from airflow_pipelines.program.connectors import Connector, ConnectorDirection
from airflow_pipelines.rows.zsets import WEIGHT
from tests.connectors.odd_texts import texts
from tests.connectors.transports.delta_table import tables as delta
from tests.connectors.transports.files.manifests import listed
from tests.connectors.transports.iceberg import tables as iceberg

pytestmark = pytest.mark.core
KEY = ("id",)
Row = tuple[Any, ...]
Opened = Callable[[Path, LeftOutRows], OutputTransport]


def changes(*rows: tuple[int, str | bytes, int], key: Sequence[str] = KEY) -> ChangesInMemory:
    ids, names, weights = zip(*rows, strict=True)
    table = pa.table({"id": pa.array(ids, pa.int64()), "name": texts(names), WEIGHT: pa.array(weights, pa.int64())})
    return ChangesInMemory(table, tuple(key))


def _folder(folder: Path, left_out: LeftOutRows) -> OutputTransport:
    connector = Connector("v", "o", ConnectorDirection.OUTPUT, "file_output", {"path": f"{folder}/out/"}, "parquet", {})
    sink = open_output(connector, delta.PEOPLE, NO_REFERENCES, PipelineReference("p1", "test"), KEY, left_out=left_out)
    sink.open(False)
    return sink


def _in_files(folder: Path) -> list[Row]:
    import fsspec

    found = [pq.read_table(folder / "out" / file["name"]) for file in listed(fsspec.filesystem("file"), str(folder / "out"))]
    for table in found:
        table.validate(full=True)
    return [(row["__op"], row["id"], row["name"]) for table in found for row in table.to_pylist()]


def _delta_log(folder: Path) -> list[Row]:
    found = pa.table(DeltaTable(str(folder / "t")).scan()).to_pylist()
    return [(row["__feldera_op"], row["id"], row["name"]) for row in sorted(found, key=lambda row: row["__feldera_ts"])]


def _iceberg_log(folder: Path) -> list[Row]:
    found = iceberg.table(folder).scan().to_arrow().sort_by("__ts")
    found.validate(full=True)
    return [(row["__op"], row["id"], row["name"]) for row in found.to_pylist()]


LOGS: dict[str, tuple[Opened, Callable[[Path], list[Row]]]] = {
    "delta": (lambda folder, left_out: delta.output(folder / "t", key=KEY, left_out=left_out), _delta_log),
    "iceberg": (lambda folder, left_out: iceberg.output(folder, key=KEY, context={"left_out": left_out}), _iceberg_log),
    "parquet": (_folder, _in_files),
}
TABLES: dict[str, tuple[Opened, Callable[[Path], list[Row]], tuple[str, ...]]] = {
    "delta by key": (
        lambda folder, left_out: delta.merged(folder / "t", key=KEY, left_out=left_out),
        lambda folder: delta.rows(folder / "t"),
        KEY,
    ),
    "delta by row": (
        lambda folder, left_out: delta.merged(folder / "t", left_out=left_out),
        lambda folder: delta.rows(folder / "t"),
        (),
    ),
    "iceberg": (
        lambda folder, left_out: iceberg.output(folder, write="merged", key=KEY, context={"left_out": left_out}),
        iceberg.rows,
        KEY,
    ),
}
FIRST = ((1, "a", 1), (2, b"\xff", 1), (3, "c", 1))
SECOND = ((1, "a", -1), (1, b"b\xfe", 1), (2, b"\xff", -1), (2, "B", 1), (4, "d", 1))
THIRD = ((1, b"b\xfe", -1), (1, "A", 1), (3, "c", -1))
WHY = "column 'name' has a text that is not UTF-8"


@pytest.mark.parametrize("log", LOGS)
def test_a_log_has_the_changes_of_all_other_rows(tmp_path: Path, log: str) -> None:
    opened, found = LOGS[log]
    left_out = LeftOutRows(KEY)
    sink = opened(tmp_path, left_out)
    assert sink.write(1, changes(*FIRST))[0] == 2
    assert [error.message for error in left_out.take()[0]] == [f"row (id = 2): {WHY}"]
    sink.write(2, changes(*SECOND))
    assert [error.message for error in left_out.take()[0]] == [f"row (id = 1): {WHY}"]
    sink.write(3, changes(*THIRD))
    assert left_out.take() == ([], 0)
    sink.close()
    assert found(tmp_path) == [
        ("i", 1, "a"),
        ("i", 3, "c"),
        # The former row is not so any more.
        ("d", 1, "a"),
        ("u", 2, "B"),
        ("i", 4, "d"),
        ("u", 1, "A"),
        ("d", 3, "c"),
    ]


@pytest.mark.parametrize("table", TABLES)
def test_a_table_that_is_to_equal_its_view_has_all_other_rows(tmp_path: Path, table: str) -> None:
    opened, found, key = TABLES[table]
    left_out = LeftOutRows(KEY)
    sink = opened(tmp_path, left_out)
    sink.write(1, changes(*FIRST, key=key))
    assert [error.message for error in left_out.take()[0]] == [f"row (id = 2): {WHY}"]
    assert found(tmp_path) == [(1, "a"), (3, "c")]
    sink.write(2, changes(*SECOND, key=key))
    assert [error.message for error in left_out.take()[0]] == [f"row (id = 1): {WHY}"]
    assert found(tmp_path) == [(2, "B"), (3, "c"), (4, "d")]
    sink.write(3, changes(*THIRD, key=key))
    assert left_out.take() == ([], 0)
    assert found(tmp_path) == [(1, "A"), (2, "B"), (4, "d")]
    sink.write(4, changes((1, "A", -1), (4, "d", -1), key=key))
    assert found(tmp_path) == [(2, "B")]
    sink.close()


@pytest.mark.parametrize("opened", [LOGS["delta"][0], LOGS["iceberg"][0], _folder, TABLES["iceberg"][0]])
def test_the_first_one_may_end_the_output(tmp_path: Path, opened: Opened) -> None:
    sink = opened(tmp_path, LeftOutRows(KEY, OnError.STOP))
    with pytest.raises(ConnectorFailure, match=r"row \(id = 2\): column 'name' has a text that is not UTF-8\. The output ends"):
        sink.write(1, changes(*FIRST))


def test_texts_are_looked_for_within_other_values() -> None:
    ids = pa.array([1, 2, 3])
    odd = texts(["a", b"\xff", "c"])
    columns = {
        "text": odd,
        "list": pa.ListArray.from_arrays(pa.array([0, 1, 2, 3], pa.int32()), odd),
        "struct": pa.StructArray.from_arrays([ids, odd], names=["x", "y"]),
        "map": pa.MapArray.from_arrays(pa.array([0, 1, 2, 3], pa.int32()), ids, odd),
        "deep": pa.StructArray.from_arrays([pa.ListArray.from_arrays(pa.array([0, 1, 2, 3], pa.int32()), odd)], names=["x"]),
    }
    for name, column in columns.items():
        rows = pa.table({"id": ids, name: column})
        with pytest.raises(UnreadableTextError, match=f"column '{name}' has a text"):
            check_texts(rows)
        assert drop_unreadable(rows).column("id").to_pylist() == [1, 3]
        goes = pa.chunked_array([pa.array([False, True, True])])
        assert drop_unreadable_deletes(rows, goes).column("id").to_pylist() == [1, 3]
        with pytest.raises(UnreadableTextError):
            drop_unreadable_deletes(rows, pa.chunked_array([pa.array([True, False, True])]))
    bytes_of_any_kind = pa.table({"b": pa.array([b"\xff", None])})
    check_texts(bytes_of_any_kind)
    assert drop_unreadable(bytes_of_any_kind) is bytes_of_any_kind
