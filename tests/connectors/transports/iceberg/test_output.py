"""Writing Iceberg tables: change logs and tables that equal the view, each step once; what is refused."""

from __future__ import annotations

import datetime as dt
import importlib.util
import random
import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pydantic import ValidationError
from pyiceberg.transforms import BucketTransform, IdentityTransform, Transform, TruncateTransform

from airflow_pipelines.connectors.base import ConnectorFailure
from airflow_pipelines.connectors.changes import Changes
from airflow_pipelines.connectors.common_options import OnError
from airflow_pipelines.connectors.left_out import LeftOutRows
from airflow_pipelines.connectors.transports.iceberg.output import IcebergOutput
from airflow_pipelines.connectors.transports.iceberg.output_options import IcebergOutputOptions, check_output
from airflow_pipelines.rows.formats.option_errors import InvalidOptionError
from airflow_pipelines.rows.schema import RelationSchema
from tests.connectors.odd_texts import texts
from tests.connectors.relations import col, relation
from tests.connectors.transports.iceberg.tables import PEOPLE, catalog, changes, output, rows, table

KEY = ("id",)


def merged(folder: Path, **rest: Any) -> IcebergOutput:
    return output(folder, **{"write": "merged", "key": KEY, **rest})


def by_key(*rows: tuple[Any, ...]) -> Changes:
    return changes(*rows, key=KEY)


def test_a_change_log_has_each_change_in_order(tmp_path: Path) -> None:
    sink = output(tmp_path)
    assert sink.committed_step() is None
    records, size = sink.write(1, changes((1, "a", 1), (2, None, 2)))
    assert (records, size > 0) == (3, True)
    sink.write(4, changes((1, "a", -1)))
    sink.close()
    found = table(tmp_path).scan().to_arrow().sort_by("__ts")
    assert found.drop_columns(["__ts"]).to_pylist() == [
        {"id": 1, "name": "a", "__op": "i"},
        {"id": 2, "name": None, "__op": "i"},
        {"id": 2, "name": None, "__op": "i"},
        {"id": 1, "name": "a", "__op": "d"},
    ]
    assert len(set(found["__ts"].to_pylist())) == 4
    again = output(tmp_path, resumed=True)
    assert again.committed_step() == 4
    again.write(5, changes((9, "z", 1)))
    assert table(tmp_path).scan().to_arrow().sort_by("__ts")["id"].to_pylist()[-1] == 9


def partitioned(folder: Path) -> None:
    """A table that is partitioned by what is computed of its columns."""
    made = catalog(folder)
    made.create_namespace("db")
    schema = pa.schema([("id", pa.int64()), ("name", pa.string()), ("__op", pa.string()), ("__ts", pa.int64())])
    created = made.create_table("db.people", schema)
    with created.update_spec() as spec:
        spec.add_field("id", BucketTransform(4), "b").add_field("name", TruncateTransform(2), "t").add_identity("__op")


def test_partitions_that_are_computed(tmp_path: Path) -> None:
    pytest.importorskip("pyiceberg_core", reason="pip install 'airflow-pipelines[iceberg]'")
    partitioned(tmp_path)
    sink = output(tmp_path, mode="append")
    sink.write(1, changes(*((number, f"name {number}", 1) for number in range(20))))
    sink.write(2, changes((3, "name 3", -1)))
    assert len(rows(tmp_path)) == 21
    assert len(table(tmp_path).inspect.partitions()) > 2


def test_a_change_log_in_partitions_of_a_column(tmp_path: Path) -> None:
    made = catalog(tmp_path)
    made.create_namespace("db")
    schema = pa.schema([("id", pa.int64()), ("name", pa.string()), ("__op", pa.string()), ("__ts", pa.int64())])
    with made.create_table("db.people", schema).update_spec() as spec:
        spec.add_identity("__op")
    sink = output(tmp_path, mode="append")
    sink.write(1, changes((1, "a", 1), (2, "b", 1)))
    sink.write(2, changes((1, "a", -1)))
    assert [row[:3] for row in rows(tmp_path)] == [(1, "a", "d"), (1, "a", "i"), (2, "b", "i")]


def test_a_merged_table_in_partitions_that_are_computed(tmp_path: Path) -> None:
    pytest.importorskip("pyiceberg_core", reason="pip install 'airflow-pipelines[iceberg]'")
    made = catalog(tmp_path)
    made.create_namespace("db")
    with made.create_table("db.people", pa.schema([("id", pa.int64()), ("name", pa.string())])).update_spec() as spec:
        spec.add_field("id", BucketTransform(4), "b")
    sink = merged(tmp_path, mode="append")
    sink.write(1, by_key(*((number, f"n{number}", 1) for number in range(20))))
    sink.write(2, by_key((3, "n3", -1), (4, "n4", -1), (4, "N4", 1)))
    expected = [(number, "N4" if number == 4 else f"n{number}") for number in range(20) if number != 3]
    assert rows(tmp_path) == sorted(expected, key=repr)


def test_partitions_that_nobody_can_compute_are_refused_at_the_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    partitioned(tmp_path)
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *rest: None if name == "pyiceberg_core" else found(name, *rest))
    with pytest.raises(
        ConnectorFailure, match=r"partitioned by bucket\[4\]\(id\), truncate\[2\]\(name\), for which pyiceberg-core"
    ):
        output(tmp_path, mode="append")


def test_updates_of_a_change_log_are_one_row(tmp_path: Path) -> None:
    sink = output(tmp_path, key=KEY, op_column="op", ts_column="at")
    sink.write(1, by_key((1, "a", 1)))
    sink.write(2, by_key((1, "a", -1), (1, "b", 1), (2, "c", 1)))
    found = table(tmp_path).scan().to_arrow().sort_by("at")
    assert list(zip(found["id"].to_pylist(), found["name"].to_pylist(), found["op"].to_pylist(), strict=True)) == [
        (1, "a", "i"),
        (1, "b", "u"),
        (2, "c", "i"),
    ]


@pytest.mark.rest
def test_a_merged_table_equals_the_view(tmp_path: Path) -> None:
    random.seed(7)
    sink = merged(tmp_path)
    view: dict[int, str] = {}
    for step in range(1, 15):
        given: list[tuple[Any, ...]] = []
        for number in random.sample(range(40), 12):
            if number in view:
                given.append((number, view.pop(number), -1))
                if random.random() < 0.5:
                    view[number] = f"s{step}"
                    given.append((number, view[number], 1))
            else:
                view[number] = f"s{step}"
                given.append((number, view[number], 1))
        sink.write(step, by_key(*given))
        assert dict(rows(tmp_path)) == view
        if step % 5 == 0:
            sink.close()
            sink = merged(tmp_path, resumed=True)
            assert sink.committed_step() == step
    assert len(rows(tmp_path)) == len(view)


def test_keys_of_many_columns_with_null_and_large_steps(tmp_path: Path) -> None:
    of = relation(col("a", "VARCHAR"), col("b", "DATE"), col("n", "INTEGER"), name="v")
    key = ("a", "b")
    days = [None, *(dt.date(2026, 1, 1) + dt.timedelta(days) for days in range(150))]
    view = {(text, day): 0 for text in (None, "x", "it's", 'a"b') for day in days}
    sink = output(tmp_path, of=of, key=key, write="merged")
    sink.write(1, changes(*((*at, n, 1) for at, n in view.items()), of=of, key=key))
    given: list[tuple[Any, ...]] = []
    for number, at in enumerate(list(view)):
        if number % 3:
            given.append((*at, view[at], -1))
            view[at] = number
            given.append((*at, number, 1))
        elif number % 2:
            given.append((*at, view.pop(at), -1))
    sink.write(2, changes(*given, of=of, key=key))
    found = {(a, b): n for a, b, n in rows(tmp_path)}
    assert found == view
    assert len(rows(tmp_path)) == len(view)


def test_a_step_is_there_once(tmp_path: Path) -> None:
    for write in ("change_log", "merged"):
        folder = tmp_path / write
        folder.mkdir()
        sink = output(folder, key=KEY, write=write)
        sink.write(3, by_key((1, "a", 1)))
        assert sink.write(3, by_key((1, "a", 1))) == (0, 0)
        again = output(folder, key=KEY, write=write, resumed=True)
        assert again.committed_step() == 3
        assert again.write(2, by_key((1, "a", 1))) == (0, 0)
        assert len(rows(folder)) == 1


@pytest.mark.rest("change_log")
@pytest.mark.parametrize("write", ["change_log", "merged"])
def test_steps_are_taken_back(tmp_path: Path, write: str) -> None:
    sink = output(tmp_path, key=KEY, write=write)
    for step in range(1, 5):
        sink.write(step, by_key((step, "a", 1)))
    again = output(tmp_path, key=KEY, write=write, resumed=True)
    again.rewind(2)
    assert again.committed_step() == 2
    assert [row[0] for row in rows(tmp_path)] == [1, 2]
    # Steps may be cut otherwise now.
    again.write(3, by_key((3, "a", 1), (4, "a", 1)))
    assert [row[0] for row in rows(tmp_path)] == [1, 2, 3, 4]
    again.rewind(0)
    assert rows(tmp_path) == []
    assert again.committed_step() == 0


@pytest.mark.rest
def test_a_merged_table_is_right_also_when_others_wrote_since(tmp_path: Path) -> None:
    sink = merged(tmp_path)
    for step in range(1, 5):
        sink.write(step, by_key((step, "a", 1)))
    table(tmp_path).append(pa.table({"id": [100], "name": ["other"]}))
    again = merged(tmp_path, resumed=True)
    again.rewind(2)
    assert again.committed_step() == 2
    again.write(3, by_key((3, "a", 1), (4, "a", 1)))
    assert rows(tmp_path) == [(1, "a"), (100, "other"), (2, "a"), (3, "a"), (4, "a")]
    again.write(4, by_key((100, "mine", 1)))
    assert (100, "mine") in rows(tmp_path)
    assert len(rows(tmp_path)) == 5


@pytest.mark.rest
def test_two_outputs_of_one_table_know_their_steps(tmp_path: Path) -> None:
    one, other = output(tmp_path), output(tmp_path, context={"endpoint": "w.c"})
    one.write(7, changes((1, "a", 1)))
    other.write(2, changes((2, "b", 1)))
    one.write(8, changes((3, "c", 1)))
    assert output(tmp_path, resumed=True).committed_step() == 8
    assert output(tmp_path, resumed=True, context={"endpoint": "w.c"}).committed_step() == 2
    assert len(rows(tmp_path)) == 3


class Epoch:
    """Stands in for the fence of a run."""

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch

    def check(self) -> None:
        """No later run is known."""


def test_a_run_that_was_replaced_writes_nothing_more(tmp_path: Path) -> None:
    first = output(tmp_path, context={"fence": Epoch(1)})
    first.write(1, changes((1, "a", 1)))
    second = output(tmp_path, resumed=True, context={"fence": Epoch(2)})
    with pytest.raises(ConnectorFailure, match="another run of the pipeline has opened the table since"):
        first.write(2, changes((2, "a", 1)))
    second.write(2, changes((2, "b", 1)))
    assert [row[:2] for row in rows(tmp_path)] == [(1, "a"), (2, "b")]


@pytest.mark.rest
def test_commits_of_others_between_two_looks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sink = merged(tmp_path)
    sink.write(1, by_key((1, "a", 1)))
    tries: list[int] = []
    plain = sink._write_and_commit

    def late(*arguments: Any) -> Any:
        if len(tries) < 2:
            tries.append(1)
            writer = sink._writer
            real = writer.write

            def write(*given: Any) -> Any:
                written = real(*given)
                table(tmp_path).append(pa.table({"id": [10 + len(tries)], "name": ["other"]}))
                return written

            with monkeypatch.context() as patch:
                patch.setattr(writer, "write", write)
                return plain(*arguments)
        return plain(*arguments)

    monkeypatch.setattr(sink, "_write_and_commit", late)
    sink.write(2, by_key((1, "a", -1), (1, "b", 1)))
    assert len(tries) == 2
    assert rows(tmp_path) == [(1, "b"), (11, "other"), (12, "other")]


@pytest.mark.rest
def test_beginnings(tmp_path: Path) -> None:
    sink = output(tmp_path, mode="error_if_exists", write="merged", key=KEY)
    # A start that was broken off before its first step.
    sink = output(tmp_path, mode="error_if_exists", write="merged", key=KEY)
    sink.write(1, by_key((1, "a", 1)))
    with pytest.raises(ConnectorFailure, match="there is such a table already"):
        output(tmp_path, mode="error_if_exists", write="merged", key=KEY)
    appended = output(tmp_path, write="merged", key=KEY, context={"endpoint": "w.c"})
    appended.write(1, by_key((1, "b", 1), (2, "b", 1)))
    assert rows(tmp_path) == [(1, "b"), (2, "b")]
    emptied = output(tmp_path, mode="truncate", write="merged", key=KEY)
    assert rows(tmp_path) == []
    emptied.write(1, by_key((5, "e", 1)))
    # Truncating is for the first start only.
    output(tmp_path, mode="truncate", write="merged", key=KEY, resumed=True)
    assert rows(tmp_path) == [(5, "e")]


def test_tables_that_do_not_fit(tmp_path: Path) -> None:
    made = catalog(tmp_path)
    made.create_namespace("db")
    made.create_table("db.people", pa.schema([pa.field("id", pa.string()), pa.field("must", pa.int64(), nullable=False)]))
    with pytest.raises(ConnectorFailure, match=r"'id' is int64 in the view and string in the table; column 'name' \(string\)"):
        merged(tmp_path)
    made.drop_table("db.people")
    with pytest.raises(ConnectorFailure, match="which this pipeline wrote, is gone"):
        merged(tmp_path, resumed=True)
    made.create_table("db.people", pa.schema([("id", pa.int64()), ("name", pa.string())]))
    with pytest.raises(ConnectorFailure, match="is not the table that this pipeline wrote"):
        merged(tmp_path, resumed=True)


LAST = dt.datetime.max
EVENTS = relation(col("id", "BIGINT"), col("at", "TIMESTAMP"), name="v")
READINGS = relation(col("id", "BIGINT"), col("x", "DOUBLE"), name="v")
NOT_TAKEN: dict[str, tuple[RelationSchema, Any, Any, Transform[Any, Any] | None, str]] = {
    "null": (PEOPLE, None, "a", None, "column 'name' must not be NULL in the table"),
    "bytes": (PEOPLE, texts([b"a\xff"])[0], "a", None, "column 'name' has a text that is not UTF-8"),
    "time": (EVENTS, pa.scalar(2**62, pa.timestamp("us")), LAST, None, "column 'at' has a value .*date value out of range"),
    "time of a partition": (EVENTS, pa.scalar(-(2**62), pa.timestamp("us")), LAST, IdentityTransform(), "column 'at' has a value"),
    "number of a partition": (READINGS, float("nan"), float("inf"), IdentityTransform(), "column 'x', by which .* is NaN"),
    "name of a partition": (PEOPLE, "a" * 300, "a", IdentityTransform(), ".*by which the table is partitioned is too long"),
}


@pytest.mark.rest(
    "null-change_log",
    "bytes-change_log",
    "time-merged",
    "time of a partition-change_log",
    "number of a partition-change_log",
    "number of a partition-merged",
    "name of a partition-merged",
)
@pytest.mark.parametrize("write", ["change_log", "merged"])
@pytest.mark.parametrize("case", NOT_TAKEN)
def test_rows_that_the_table_does_not_take_are_left_out(tmp_path: Path, case: str, write: str) -> None:
    of, bad, good, transform, reason = NOT_TAKEN[case]
    made = catalog(tmp_path)
    made.create_namespace("db")
    value = of.arrow.field(1)
    log = [pa.field("__op", pa.string(), nullable=False), pa.field("__ts", pa.int64())] if write == "change_log" else []
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), value.with_nullable(case != "null"), *log])
    with made.create_table("db.people", schema).update_spec() as spec:
        if transform is not None:
            spec.add_field(value.name, transform, "part")
    left_out = LeftOutRows(KEY)
    sink = output(tmp_path, of=of, key=KEY, write=write, context={"left_out": left_out})

    def step(number: int, *changed: tuple[Any, ...]) -> list[str]:
        sink.write(number, changes(*changed, of=of, key=KEY))
        errors, count = left_out.take()
        assert count == len(errors)
        return [error.message for error in errors]

    (message,) = step(1, (1, good, 1), (2, bad, 1), (3, good, 1))
    assert re.match(r"row \(id = 2\): " + reason, message)
    assert [row[:2] for row in rows(tmp_path)] == [(1, good), (3, good)]
    # Of an update the old row goes, and a row that was left out may become one that the table takes.
    assert [text.partition(":")[0] for text in step(2, (1, good, -1), (1, bad, 1), (2, bad, -1), (2, good, 1))] == ["row (id = 1)"]
    if write == "merged":
        assert rows(tmp_path) == [(2, good), (3, good)]
    else:
        found = table(tmp_path).scan().to_arrow().sort_by("__ts").select(["__op", "id"]).to_pylist()
        assert [tuple(row.values()) for row in found] == [("i", 1), ("i", 3), ("d", 1), ("u", 2)]
    assert output(tmp_path, of=of, key=KEY, write=write, resumed=True).committed_step() == 2


def test_a_text_that_is_none_in_a_computed_partition_leaves_the_process_alone(tmp_path: Path) -> None:
    pytest.importorskip("pyiceberg_core", reason="pip install 'airflow-pipelines[iceberg]'")
    partitioned(tmp_path)
    left_out = LeftOutRows(KEY)
    sink = output(tmp_path, context={"left_out": left_out})
    sink.write(1, changes((1, "a", 1), (2, texts([b"a\xff"])[0], 1)))
    assert (left_out.take()[1], [row[:2] for row in rows(tmp_path)]) == (1, [(1, "a")])


def test_the_first_row_that_the_table_does_not_take_may_end_the_output(tmp_path: Path) -> None:
    sink = output(tmp_path, of=EVENTS, context={"left_out": LeftOutRows((), OnError.STOP)})
    with pytest.raises(ConnectorFailure, match=r"row \(id = 1, at = .*\): column 'at' .* The output ends, as 'on_error'"):
        sink.write(1, changes((1, pa.scalar(2**62, pa.timestamp("us")), 1), (2, LAST, 1), of=EVENTS))
    assert rows(tmp_path) == []


def test_a_key_that_is_not_unique(tmp_path: Path) -> None:
    sink = merged(tmp_path)
    with pytest.raises(ConnectorFailure, match=r"more than one row of the view has the same key \(id\)"):
        sink.write(1, by_key((1, "a", 1), (1, "b", 1)))
    assert rows(tmp_path) == []


def test_types(tmp_path: Path) -> None:
    of = relation(
        col("k", "TINYINT"),
        col("dec", "DECIMAL", precision=12, scale=3),
        col("d", "DATE"),
        col("t", "TIME"),
        col("ts", "TIMESTAMP"),
        col("tz", "TIMESTAMP_TZ"),
        col("bin", "VARBINARY"),
        col("u", "UUID"),
        col("arr", "ARRAY", component=col("e", "SMALLINT").type),
        col("st", "STRUCT", fields=(("x", col("x", "TINYINT").type), ("y", col("y", "VARCHAR").type))),
        col("m", "MAP", key=col("e", "VARCHAR", null=False).type, value=col("e", "DOUBLE").type),
        name="v",
    )
    at = dt.datetime(2026, 1, 2, 3, 4, 5, 6)
    row = (
        1,
        Decimal("1.250"),
        at.date(),
        at.time(),
        at,
        at.replace(tzinfo=dt.UTC),
        b"\x00\xff",
        "12345678-1234-5678-1234-567812345678",
        [1, None],
        {"x": 5, "y": None},
        [("a", 0.5)],
    )
    empty = (2, *(None for _ in range(10)))
    sink = output(tmp_path, of=of, key=("k",), write="merged")
    sink.write(1, changes((*row, 1), (*empty, 1), of=of, key=("k",)))
    assert rows(tmp_path) == [row, empty]
    # Rows that stay are written anew with what they had.
    sink.write(2, changes((*empty, -1), of=of, key=("k",)))
    assert rows(tmp_path) == [row]


def test_what_cannot_be_written_is_refused() -> None:
    given = {"catalog_type": "sql", "sql.uri": "x", "table_name": "a.b"}
    with pytest.raises(ValidationError, match="say which table to write"):
        IcebergOutputOptions.model_validate({})
    with pytest.raises(ValidationError, match="'properties' is no option"):
        IcebergOutputOptions.model_validate({**given, "properties": {"sql.uri": "y"}})
    with pytest.raises(InvalidOptionError, match="tells rows apart by an index"):
        check_output(IcebergOutputOptions.model_validate({**given, "write": "merged"}), PEOPLE, None)
    with pytest.raises(InvalidOptionError, match="the view has a column 'name' itself"):
        check_output(IcebergOutputOptions.model_validate({**given, "op_column": "name"}), PEOPLE, None)
    with pytest.raises(InvalidOptionError, match="must differ"):
        check_output(IcebergOutputOptions.model_validate({**given, "op_column": "x", "ts_column": "X"}), PEOPLE, None)
