"""Reading Iceberg tables: snapshots and what they change, from any position; what is refused."""

from __future__ import annotations

import datetime as dt
import uuid
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pydantic import ValidationError
from pyiceberg.schema import Schema
from pyiceberg.types import NestedField, StringType, UUIDType

from airflow_pipelines.connectors.base import ChunkInTransaction, ConnectorFailure, TransientConnectorFailure
from airflow_pipelines.connectors.transports.iceberg.input_options import IcebergInputOptions
from airflow_pipelines.rows.types import ColumnType
from tests.connectors.relations import col, relation
from tests.connectors.transports.iceberg.tables import catalog, read_all, seen, source, table

TWO = pa.schema([("id", pa.int64()), ("name", pa.string())])


@pytest.fixture
def people(tmp_path: Path) -> Any:
    made = catalog(tmp_path)
    made.create_namespace("db")
    return made.create_table("db.people", TWO)


def two(*values: tuple[int, str | None]) -> pa.Table:
    return pa.Table.from_pylist([{"id": id, "name": name} for id, name in values], TWO)


def test_a_snapshot_is_read_once_from_every_position(people: Any, tmp_path: Path) -> None:
    for part in range(3):
        people.append(two(*((part * 10 + n, f"n{n}") for n in range(10))))
    people.delete("id = 14")
    expected = {(n, f"n{n % 10}", 1) for n in range(30) if n != 14}
    chunks = read_all(source(tmp_path), 4)
    assert len(chunks) > 6
    assert chunks[-1].end_of_input
    assert set(seen(chunks)) == expected
    assert len(seen(chunks)) == 29
    people.append(two((99, "later")))
    for number, chunk in enumerate(chunks):
        # The snapshot that was begun is gone on with, whatever came after it.
        rest = read_all(source(tmp_path, position=chunk.position), 7)
        assert Counter(seen(chunks[: number + 1] + rest)) == Counter(expected)


def test_how_far_an_input_is(people: Any, tmp_path: Path) -> None:
    people.append(two((1, "a"), (2, "b")))
    whole = source(tmp_path)
    assert whole.gauges() == {"iceberg_phase": 0}
    whole.read(1, 0)
    assert whole.gauges() == {"iceberg_phase": 0}
    read_all(whole)
    assert whole.gauges() == {"iceberg_phase": 2}
    both = source(tmp_path, "snapshot_and_follow")
    assert both.gauges() == {"iceberg_phase": 0}
    read_all(both)
    assert both.gauges() == {"iceberg_phase": 1}
    assert source(tmp_path, "follow").gauges() == {"iceberg_phase": 1}


def test_older_snapshots_and_conditions(people: Any, tmp_path: Path) -> None:
    people.append(two((1, "a"), (2, "b")))
    first = people.current_snapshot()
    people.append(two((3, "c")))
    assert sorted(seen(read_all(source(tmp_path, snapshot_id=first.snapshot_id)))) == [(1, "a", 1), (2, "b", 1)]
    then = dt.datetime.fromtimestamp((people.current_snapshot().timestamp_ms - 1) / 1000, dt.UTC).isoformat()
    assert len(seen(read_all(source(tmp_path, datetime=then)))) in (2, 3)
    assert seen(read_all(source(tmp_path, snapshot_filter="id > 1 and name <> 'c'"))) == [(2, "b", 1)]
    assert len(seen(read_all(source(tmp_path, metadata_location=table(tmp_path).metadata_location)))) == 3
    with pytest.raises(ConnectorFailure, match=r"has no snapshot 5; its newest: \d+, \d+"):
        source(tmp_path, snapshot_id=5)
    with pytest.raises(ConnectorFailure, match="had no snapshot yet at 2001-01-01"):
        source(tmp_path, datetime="2001-01-01")
    with pytest.raises(ConnectorFailure, match=r"iceberg_input cannot open db\.people: "):
        source(tmp_path, snapshot_filter="nonsense ==== 3")


def renamed(people: Any, old: str, new: str) -> None:
    with people.update_schema() as change:
        change.rename_column(old, new)


def test_a_renamed_column_is_the_same_one(people: Any, tmp_path: Path) -> None:
    people.append(two((1, "a"), (2, "b")))
    made = source(tmp_path, "snapshot_and_follow")
    before = read_all(made)
    assert sorted(seen(before)) == [(1, "a", 1), (2, "b", 1)]
    renamed(people, "name", "label")
    people.append(pa.Table.from_pylist([{"id": 3, "label": "c"}]))
    people.delete("id = 2")
    made._next_look = 0
    after = read_all(made)
    # The row that stays goes with its file and comes again, the same.
    assert sorted(seen(after)) == [(1, "a", -1), (1, "a", 1), (2, "b", -1), (3, "c", 1)]
    # Another column takes the name over, and is another one.
    with people.update_schema() as change:
        change.add_column("name", StringType())
    people.append(pa.Table.from_pylist([{"id": 4, "label": "d", "name": "other"}]))
    for each in (made, source(tmp_path, "snapshot_and_follow", position=after[-1].position)):
        each._next_look = 0
        assert seen(read_all(each)) == [(4, "d", 1)]
    # Who begins now knows the columns as they are now, by their names.
    new = relation(col("id", "BIGINT"), col("label", "VARCHAR"), col("name", "VARCHAR"), name="t")
    assert sorted(seen(read_all(source(tmp_path, of=new)))) == [(1, "a", None, 1), (3, "c", None, 1), (4, "d", "other", 1)]


def test_a_position_that_knows_no_names(people: Any, tmp_path: Path) -> None:
    people.append(two((1, "a")))
    made = source(tmp_path, "snapshot_and_follow")
    position = {name: value for name, value in read_all(made)[-1].position.items() if name != "names"}
    renamed(people, "name", "label")
    people.append(pa.Table.from_pylist([{"id": 2, "label": "b"}]))
    again = source(tmp_path, "snapshot_and_follow", position=position)
    again._next_look = 0
    assert seen(read_all(again)) == [(2, "b", 1)]


def test_renamed_fields_of_nested_values(tmp_path: Path) -> None:
    made = catalog(tmp_path)
    made.create_namespace("db")
    point = pa.struct([("x", pa.int32()), ("y", pa.int32())])
    kept = made.create_table("db.people", pa.schema([("id", pa.int64()), ("p", point), ("l", pa.list_(point))]))
    kept.append(pa.Table.from_pylist([{"id": 1, "p": {"x": 1, "y": 2}, "l": [{"x": 3, "y": 4}]}], kept.schema().as_arrow()))
    of_point = (("x", ColumnType("INTEGER")), ("y", ColumnType("INTEGER")))
    of = relation(
        col("id", "BIGINT"),
        col("p", "STRUCT", fields=of_point),
        col("l", "ARRAY", component=ColumnType("STRUCT", fields=of_point)),
        name="t",
    )
    followed = source(tmp_path, "snapshot_and_follow", of=of)
    assert seen(read_all(followed)) == [(1, {"x": 1, "y": 2}, [{"x": 3, "y": 4}], 1)]
    with kept.update_schema() as change:
        change.rename_column("p.x", "across").rename_column("l.element.y", "down")
    kept.append(pa.Table.from_pylist([{"id": 2, "p": {"across": 5, "y": 6}, "l": [{"x": 7, "down": 8}]}], kept.schema().as_arrow()))
    followed._next_look = 0
    assert seen(read_all(followed)) == [(2, {"x": 5, "y": 6}, [{"x": 7, "y": 8}], 1)]


def test_an_empty_table(people: Any, tmp_path: Path) -> None:
    (chunk,) = read_all(source(tmp_path))
    assert (chunk.records, chunk.end_of_input) == (0, True)
    following = source(tmp_path, "snapshot_and_follow")
    assert read_all(following) == []
    people.append(two((1, "a")))
    following._next_look = 0
    assert seen(read_all(following)) == [(1, "a", 1)]


def test_changes_of_later_snapshots(people: Any, tmp_path: Path) -> None:
    people.append(two((1, "a"), (2, "b"), (3, "c")))
    both, later = source(tmp_path, "snapshot_and_follow"), source(tmp_path, "follow")
    assert sorted(seen(read_all(both))) == [(1, "a", 1), (2, "b", 1), (3, "c", 1)]
    assert read_all(later) == []
    people.append(two((4, "d")))
    people.delete("id = 2")
    people.overwrite(two((1, "A")), "id = 1")
    for made in (both, later):
        made._next_look = 0
        chunks = read_all(made)
        weights: Counter[Any] = Counter()
        for id, name, weight in seen(chunks):
            weights[(id, name)] += weight
        assert {row: weight for row, weight in weights.items() if weight} == {
            (4, "d"): 1,
            (2, "b"): -1,
            (1, "a"): -1,
            (1, "A"): 1,
        }
        # What one snapshot changes is one transaction.
        ends = [chunk.transaction for chunk in chunks if chunk.changes is not None]
        assert ends.count(ChunkInTransaction.LAST) >= 3
        assert ends[-1] is ChunkInTransaction.LAST


def test_changes_are_gone_on_with_from_every_position(people: Any, tmp_path: Path) -> None:
    people.append(two(*((n, "x") for n in range(10))))
    begin = source(tmp_path, "follow")
    assert begin.read(10, 0) is None
    before = {"snapshot": people.current_snapshot().snapshot_id, "whole": True, "done": True}
    people.delete("id in (3, 7)")
    people.append(two((10, "y"), (11, "y")))
    chunks = read_all(source(tmp_path, "follow", position=before), 3)
    total: Counter[Any] = Counter()
    for id, name, weight in seen(chunks):
        total[(id, name)] += weight
    assert {row: weight for row, weight in total.items() if weight} == {(3, "x"): -1, (7, "x"): -1, (10, "y"): 1, (11, "y"): 1}
    for number, chunk in enumerate(chunks):
        rest = read_all(source(tmp_path, "follow", position=chunk.position))
        assert seen(chunks[: number + 1] + rest) == seen(chunks)


def test_how_far_it_is_behind(people: Any, tmp_path: Path) -> None:
    made = source(tmp_path, "follow")
    people.append(two((1, "a"), (2, "b")))
    people.append(two((3, "c")))
    assert made.read(1, 0) is not None
    lag = made.lag()
    assert lag is not None
    assert lag.records == 3


def test_a_snapshot_that_is_gone(people: Any, tmp_path: Path) -> None:
    people.append(two((1, "a")))
    first = people.current_snapshot().snapshot_id
    people.append(two((2, "b")))
    position = {"snapshot": people.current_snapshot().snapshot_id, "whole": True, "done": True}
    people.manage_snapshots().rollback_to_snapshot(first).commit()
    with pytest.raises(ConnectorFailure, match="is not in the history of its current snapshot any more"):
        source(tmp_path, "follow", position=position)
    with pytest.raises(ConnectorFailure, match="there is no such table"):
        source(tmp_path, table_name="db.nobody")
    with pytest.raises(ConnectorFailure, match="there is no such table"):
        source(tmp_path, table_name="nowhere.people")


def test_a_snapshot_that_was_read_may_expire(people: Any, tmp_path: Path) -> None:
    people.append(two((1, "a")))
    read = people.current_snapshot().snapshot_id
    once, followed = (read_all(source(tmp_path, mode)) for mode in ("snapshot", "snapshot_and_follow"))
    people.append(two((2, "b")))
    people.maintenance.expire_snapshots().by_id(read).commit()
    assert seen(read_all(source(tmp_path, "snapshot", position=once[-1].position))) == []
    with pytest.raises(ConnectorFailure, match="it has expired, or the table was rolled back"):
        source(tmp_path, "snapshot_and_follow", position=followed[-1].position)


def test_a_catalog_that_is_away() -> None:
    with pytest.raises(TransientConnectorFailure, match=r"iceberg_input cannot open db\.people"):
        source(Path("/nonexistent/folder"))


def test_types(tmp_path: Path) -> None:
    made = catalog(tmp_path)
    made.create_namespace("db")
    number = uuid.UUID("12345678-1234-5678-1234-567812345678")
    schema = pa.schema(
        [
            ("i", pa.int32()),
            ("r", pa.float32()),
            ("dec", pa.decimal128(12, 3)),
            ("d", pa.date32()),
            ("t", pa.time64("us")),
            ("ts", pa.timestamp("us")),
            ("tz", pa.timestamp("us", "UTC")),
            ("bin", pa.binary()),
            ("arr", pa.list_(pa.string())),
            ("st", pa.struct([("x", pa.int64())])),
        ]
    )
    at = dt.datetime(2026, 1, 2, 3, 4, 5, 6)
    row = {
        "i": 1,
        "r": 0.5,
        "dec": Decimal("1.250"),
        "d": at.date(),
        "t": at.time(),
        "ts": at,
        "tz": at.replace(tzinfo=dt.UTC),
        "bin": b"\x00\xff",
        "arr": ["a", None],
        "st": {"x": 5},
    }
    made.create_table("db.people", schema).append(pa.Table.from_pylist([row, dict.fromkeys(row)], schema))
    wanted = relation(
        col("I", "BIGINT"),
        col("r", "DOUBLE"),
        col("dec", "DECIMAL", precision=14, scale=3),
        col("d", "DATE"),
        col("t", "TIME"),
        col("ts", "TIMESTAMP"),
        col("tz", "TIMESTAMP_TZ"),
        col("bin", "VARBINARY"),
        col("arr", "ARRAY", component=col("e", "VARCHAR").type),
        col("st", "STRUCT", fields=(("x", col("x", "BIGINT").type),)),
        col("nowhere", "VARCHAR"),
    )
    chunks = read_all(source(tmp_path, of=wanted))
    assert sum(chunk.num_parse_errors for chunk in chunks) == 0
    first, second = seen(chunks)
    assert first == (*row.values(), None, 1)
    assert second == (*(None for _ in range(11)), 1)
    uuids = made.create_table("db.uuids", Schema(NestedField(1, "u", UUIDType())))
    uuids.append(pa.table({"u": pa.array([number.bytes, None], pa.uuid())}))
    assert seen(read_all(source(tmp_path, table_name="db.uuids", of=relation(col("u", "UUID"))))) == [(str(number), 1), (None, 1)]


def test_rows_that_do_not_fit_are_counted(people: Any, tmp_path: Path) -> None:
    people.append(two((1, "a"), (300, "b")))
    small = relation(col("id", "TINYINT"), col("name", "VARCHAR", null=False))
    people.append(two((2, None)))
    chunks = read_all(source(tmp_path, of=small))
    assert seen(chunks) == [(1, "a", 1)]
    errors = [error.message for chunk in chunks for error in chunk.parse_errors]
    assert sum(chunk.num_parse_errors for chunk in chunks) == 2
    assert any("column 'id'" in error for error in errors)
    assert any("column 'name' is NOT NULL" in error for error in errors)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mode": "snapshot"}, "give one of the two"),
        ({"mode": "follow", "metadata_location": "/x.json"}, "mode 'follow' needs a catalog"),
        ({"mode": "snapshot", "catalog_type": "sql", "sql.uri": "x"}, "belong together"),
        ({"mode": "snapshot", "catalog_type": "sql", "table_name": "a.b"}, "needs 'sql.uri'"),
        ({"mode": "snapshot", "catalog_type": "sql", "table_name": "people", "sql.uri": "x"}, "String should match pattern"),
        (
            {"mode": "snapshot", "catalog_type": "sql", "table_name": "a.b", "sql.uri": "x", "rest.uri": "y"},
            "is not for catalog_type",
        ),
        ({"mode": "snapshot", "metadata_location": "/x", "rest.uri": "y"}, "needs a catalog_type"),
        ({"mode": "snapshot", "metadata_location": "/x", "rest.urii": "y"}, "Extra inputs are not permitted"),
        ({"mode": "snapshot", "metadata_location": "/x", "snapshot_id": 1, "datetime": "2026-01-01"}, "give one of them"),
        ({"mode": "snapshot", "metadata_location": "/x", "datetime": "noon"}, "is no time"),
    ],
)
def test_options_that_contradict_each_other(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        IcebergInputOptions.model_validate(options)
