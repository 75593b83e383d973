"""Reading Delta tables: versions, what changes them, from any place on."""

from __future__ import annotations

import datetime as dt
import json
import random
import shutil
import time
from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from airflow_pipelines.connectors.base import (
    ChunkInTransaction,
    ConnectorFailure,
    InputChunk,
    Lag,
    Lagging,
    TransientConnectorFailure,
)
from airflow_pipelines.connectors.transports.delta_table import parts
from airflow_pipelines.connectors.transports.delta_table.input import DeltaTableInput
from airflow_pipelines.connectors.transports.delta_table.input_options import DeltaInputOptions, check_input
from airflow_pipelines.rows.formats.option_errors import InvalidOptionError
from airflow_pipelines.rows.schema import RelationSchema
from tests.connectors.contexts import input_context
from tests.connectors.relations import SCALARS, col, relation
from tests.connectors.transports.delta_table.tables import PEOPLE

CDF = {"delta.enableChangeDataFeed": "true"}
MORE, LAST = ChunkInTransaction.MORE, ChunkInTransaction.LAST


def source(path: Path | str, mode: str = "snapshot", *, position: Any = None, of: RelationSchema = PEOPLE, **options: Any) -> Any:
    """An input that is open."""

    def no_parser() -> Any:
        raise AssertionError("this input has no format")

    made = DeltaTableInput(
        DeltaInputOptions.model_validate({"uri": str(path), "mode": mode, **options}), input_context(of, None, no_parser)
    )
    made.open(None if position is None else json.loads(json.dumps(position)))
    return made


def read_all(made: Any, max_records: int = 1_000_000) -> list[InputChunk]:
    """All chunks up to the end, or up to where nothing follows."""
    chunks: list[InputChunk] = []
    while (chunk := made.read(max_records, 0)) is not None:
        chunks.append(chunk)
        if chunk.end_of_input:
            break
    return chunks


def seen(chunks: Sequence[InputChunk]) -> list[tuple[Any, ...]]:
    """The rows that chunks bring, in order, each with its operation: 1 inserts, -1 deletes."""
    return [tuple(row.values()) for chunk in chunks if chunk.changes is not None for row in chunk.changes.rows.to_pylist()]


def contents(chunks: Sequence[InputChunk]) -> Counter[tuple[Any, ...]]:
    """What a table without a key has after chunks."""
    found: Counter[tuple[Any, ...]] = Counter()
    for *row, op in seen(chunks):
        found[tuple(row)] += op
    assert min(found.values(), default=0) >= 0
    return +found


def people(*rows: tuple[Any, ...]) -> pa.Table:
    """Rows of a table."""
    ids, names = zip(*rows, strict=True) if rows else ((), ())
    return pa.table({"id": pa.array(ids, pa.int64()), "name": pa.array(names, pa.string())})


def written(path: Path, *rows: tuple[Any, ...], **options: Any) -> DeltaTable:
    """A table with rows."""
    write_deltalake(str(path), people(*rows), mode="append", **options)
    return DeltaTable(str(path))


def test_snapshot_has_the_rows_of_the_newest_version_and_an_end(tmp_path: Path) -> None:
    written(tmp_path, (1, "a"), (2, None))
    written(tmp_path, (3, "c"))
    chunks = read_all(source(tmp_path))
    assert sorted(seen(chunks)) == [(1, "a", 1), (2, None, 1), (3, "c", 1)]
    assert [chunk.end_of_input for chunk in chunks] == [False, True]
    assert all(chunk.transaction is None for chunk in chunks)


def test_snapshot_of_an_empty_table_ends(tmp_path: Path) -> None:
    written(tmp_path)
    (chunk,) = read_all(source(tmp_path))
    assert (chunk.changes, chunk.end_of_input) == (None, True)


def test_snapshot_of_an_older_version_or_time(tmp_path: Path) -> None:
    written(tmp_path, (1, "a"))
    time.sleep(0.01)
    between = dt.datetime.now(dt.UTC).isoformat()
    time.sleep(0.01)
    written(tmp_path, (2, "b"))
    assert seen(read_all(source(tmp_path, version=0))) == [(1, "a", 1)]
    assert seen(read_all(source(tmp_path, datetime=between))) == [(1, "a", 1)]
    with pytest.raises(ConnectorFailure, match="has no version 7 yet; its newest is 1"):
        source(tmp_path, version=7)
    with pytest.raises(ConnectorFailure, match="begins with version 0, which is later than 1999-01-01"):
        source(tmp_path, datetime="1999-01-01T00:00:00Z")


def test_follow_begins_after_the_newest_version(tmp_path: Path) -> None:
    table = written(tmp_path, (1, "a"))
    made = source(tmp_path, "follow")
    assert read_all(made) == []
    table.delete("id = 1")
    written(tmp_path, (2, "b"))
    made._next_look = 0
    assert seen(read_all(made)) == [(1, "a", -1), (2, "b", 1)]


@pytest.mark.parametrize("configuration", [None, CDF], ids=["files", "change data feed"])
@pytest.mark.parametrize("partitions", [None, ["name"]], ids=["plain", "partitioned"])
def test_follow_is_what_updates_deletes_and_merges_change(tmp_path: Path, configuration: Any, partitions: Any) -> None:
    written(tmp_path, *((n, f"n{n % 3}") for n in range(30)), configuration=configuration, partition_by=partitions)
    made = source(tmp_path, "snapshot_and_follow")
    chunks = read_all(made)
    generator = random.Random(3)
    for _ in range(8):
        table = DeltaTable(str(tmp_path))
        number = generator.randrange(30)
        match generator.randrange(4):
            case 0:
                table.update(updates={"name": "'moved'"}, predicate=f"id = {number}")
            case 1:
                table.delete(f"id = {number}")
            case 2:
                written(tmp_path, (100 + number, "n1"), (100 + number, "n1"))
            case _:
                merge = table.merge(people((number, "merged"), (200 + number, "new")), "t.id = s.id", "s", "t")
                merge.when_matched_update_all().when_not_matched_insert_all().execute()
        made._next_look = 0
        chunks += read_all(made)
        rows = DeltaTable(str(tmp_path)).to_pyarrow_table().select(["id", "name"]).to_pylist()
        assert contents(chunks) == Counter(tuple(row.values()) for row in rows)


def test_rows_that_only_move_to_other_files_are_no_changes(tmp_path: Path) -> None:
    for n in range(4):
        written(tmp_path, (n, "a"))
    made = source(tmp_path, "follow")
    DeltaTable(str(tmp_path)).optimize.compact()
    assert seen(read_all(made)) == []
    # Of a file that is written anew only what differs.
    DeltaTable(str(tmp_path)).update(updates={"name": "'b'"}, predicate="id = 2")
    made._next_look = 0
    assert seen(read_all(made)) == [(2, "a", -1), (2, "b", 1)]


def test_columns_that_nobody_reads_change_nothing(tmp_path: Path) -> None:
    write_deltalake(str(tmp_path), pa.table({"id": [1, 2], "name": ["a", "b"], "more": [1, 1]}))
    made = source(tmp_path, "follow")
    DeltaTable(str(tmp_path)).update(updates={"more": "7"}, predicate="id = 2")
    assert seen(read_all(made)) == []


def test_large_rewrites_are_read_file_by_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "NET_BYTES", 0)
    written(tmp_path, (1, "a"), (2, "b"))
    made = source(tmp_path, "follow")
    DeltaTable(str(tmp_path)).update(updates={"name": "'c'"}, predicate="id = 2")
    rows = seen(read_all(made))
    assert [row[-1] for row in rows] == [-1, -1, 1, 1]
    assert sorted(rows) == [(1, "a", -1), (1, "a", 1), (2, "b", -1), (2, "c", 1)]


@pytest.mark.parametrize("mode", ["follow", "snapshot_and_follow"])
def test_end_version_is_the_last_one(tmp_path: Path, mode: str) -> None:
    for n in range(5):
        written(tmp_path, (n, "a"))
    chunks = read_all(source(tmp_path, mode, version=1, end_version=3))
    first = 2 if mode == "follow" else 0
    assert sorted(row[0] for row in seen(chunks)) == list(range(first, 4))
    assert chunks[-1].end_of_input
    # There is nothing to wait for.
    assert read_all(source(tmp_path, "follow", version=3, end_version=3))[0].end_of_input


@pytest.mark.rest("1")
@pytest.mark.parametrize("at_once", [1, 3, 1000])
def test_goes_on_from_any_position(tmp_path: Path, at_once: int) -> None:
    for n in range(3):
        written(tmp_path, *((10 * n + each, f"n{each}") for each in range(7)), configuration=None)
    DeltaTable(str(tmp_path)).update(updates={"name": "'x'"}, predicate="id = 3")
    DeltaTable(str(tmp_path)).delete("id > 20")
    options: dict[str, Any] = {"mode": "snapshot_and_follow", "version": 1, "end_version": 4}
    whole = read_all(source(tmp_path, **options), at_once)
    expected = seen(whole)
    for taken in range(len(whole)):
        rest = read_all(source(tmp_path, position=whole[taken].position, **options), 2)
        assert seen(whole[: taken + 1]) + seen(rest) == expected or whole[taken].end_of_input


def test_filters_are_for_all_rows_or_those_of_the_snapshot(tmp_path: Path) -> None:
    written(tmp_path, (1, "a"), (2, "b"), (3, None), (4, "d"))
    made = source(tmp_path, "snapshot_and_follow", filter="id <> 4", snapshot_filter="name >= 'b' OR name IS NULL")
    first = read_all(made)
    assert sorted(row[0] for row in seen(first)) == [2, 3]
    written(tmp_path, (4, "z"), (5, "a"))
    DeltaTable(str(tmp_path)).delete("id IN (2, 4)")
    made._next_look = 0
    assert seen(read_all(made)) == [(5, "a", 1), (2, "b", -1)]


def test_filters_of_any_expression(tmp_path: Path) -> None:
    pytest.importorskip("datafusion", reason="pip install 'airflow-pipelines[delta]'")
    gone = Path(written(tmp_path, (100, "9")).file_uris()[0].removeprefix("file://"))
    written(tmp_path, (1, "1"), (2, "x"), (3, None), (4, "4"), (5, "5"))
    gone.unlink()
    options: dict[str, Any] = {"filter": "id < 50 AND CAST(name AS INT) > 1", "snapshot_filter": "id % 2 = 0"}
    made = source(tmp_path, "snapshot_and_follow", **options)
    chunks = read_all(made, 1)
    assert seen(chunks) == [(4, "4", 1)]
    # A row at which it fails is malformed, and its number stays when a pipeline goes on in the midst of a file.
    (error,) = [error for chunk in chunks for error in chunk.parse_errors]
    assert error.message.startswith("version 1: the condition 'id < 50 AND CAST(name AS INT) > 1' cannot be evaluated: ")
    rest = read_all(source(tmp_path, "snapshot_and_follow", position=chunks[0].position, **options))
    assert (seen(rest), sum(chunk.num_parse_errors for chunk in rest)) == ([(4, "4", 1)], 0)
    DeltaTable(str(tmp_path)).update(updates={"name": "'7'"}, predicate="id > 3 AND id < 50")
    made._next_look = 0
    found = read_all(made)
    assert sorted(seen(found)) == [(4, "4", -1), (4, "7", 1), (5, "5", -1), (5, "7", 1)]


def test_deletes_of_a_change_log_by_any_expression(tmp_path: Path) -> None:
    pytest.importorskip("datafusion", reason="pip install 'airflow-pipelines[delta]'")
    written(tmp_path, (1, "0"))
    written(tmp_path, (1, "1"), (2, "x"), (3, None), (4, "10"))
    found = read_all(source(tmp_path, "cdc", version=0, end_version=1, cdc_delete_filter="CAST(name AS INT) / 2 > 1"))
    assert sorted(seen(found)) == [(1, "1", 1), (3, None, 1), (4, "10", -1)]
    assert [chunk.num_parse_errors for chunk in found] == [1]


def test_files_that_cannot_have_a_row_are_not_read(tmp_path: Path) -> None:
    table = written(tmp_path, (1, "a"))
    gone = Path(table.file_uris()[0].removeprefix("file://"))
    written(tmp_path, (100, "b"))
    gone.unlink()
    assert seen(read_all(source(tmp_path, filter="id > 50"))) == [(100, "b", 1)]
    with pytest.raises(ConnectorFailure, match=r"version 1 of the table .* can no longer be read.*Load the table anew"):
        read_all(source(tmp_path))


def test_partitions_are_not_read_either(tmp_path: Path) -> None:
    table = written(tmp_path, (1, "a b"), (2, "c/d"), (3, None), partition_by=["name"])
    for uri in table.file_uris([("name", "=", "a b")]):
        Path(uri.removeprefix("file://").replace("%20", " ")).exists()
    assert seen(read_all(source(tmp_path, filter="name = 'c/d'"))) == [(2, "c/d", 1)]
    assert seen(read_all(source(tmp_path, filter="name IS NULL"))) == [(3, None, 1)]
    assert contents(read_all(source(tmp_path))) == Counter([(1, "a b"), (2, "c/d"), (3, None)])


EVENTS = relation(col("at", "TIMESTAMP"), col("id", "BIGINT"), name="t")


@pytest.mark.parametrize("span", [3, 10, 1000])
def test_snapshot_in_the_order_of_time(tmp_path: Path, span: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "SPAN_ROWS", span)
    begin = dt.datetime(2024, 1, 1)
    times = [begin + dt.timedelta(minutes=n) for n in range(40)] + [None, begin]
    random.Random(2).shuffle(times)
    for some in (times[:15], times[15:]):
        table = pa.table({"at": pa.array(some, pa.timestamp("us")), "id": pa.array(range(len(some)), pa.int64())})
        write_deltalake(str(tmp_path), table, mode="append")
    options = {"timestamp_column": "AT", "transaction_mode": "always"}
    chunks = read_all(source(tmp_path, of=EVENTS, **options), 4)
    found = [row[0] for row in seen(chunks)]
    assert found == [None, *sorted(each for each in times if each is not None)]
    assert (sum(chunk.transaction is LAST for chunk in chunks) > 1) == (span < 42)
    for taken in (0, 2, len(chunks) // 2):
        rest = read_all(source(tmp_path, of=EVENTS, position=chunks[taken].position, **options), 7)
        assert seen(chunks[: taken + 1]) + seen(rest) == seen(chunks)


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("none", [None, None, None, None, None]),
        ("snapshot", [MORE, LAST, None, None, None]),
        ("always", [MORE, LAST, MORE, LAST, LAST]),
        ("catchup", [MORE, MORE, MORE, LAST, None]),
    ],
)
def test_transactions(tmp_path: Path, mode: str, expected: list[Any]) -> None:
    written(tmp_path, (1, "a"), (2, "b"))
    written(tmp_path, (3, "c"), (4, "d"))
    made = source(tmp_path, "snapshot_and_follow", version=0, transaction_mode=mode)
    chunks = read_all(made, 1)
    written(tmp_path, (5, "e"))
    made._next_look = 0
    chunks += read_all(made, 1)
    assert [chunk.transaction for chunk in chunks] == expected


def test_catchup_ends_also_when_the_last_version_changes_no_row(tmp_path: Path) -> None:
    written(tmp_path, (1, "a"))
    written(tmp_path, (2, "b"))
    DeltaTable(str(tmp_path)).optimize.compact()
    chunks = read_all(source(tmp_path, "snapshot_and_follow", version=0, transaction_mode="catchup"))
    assert [chunk.transaction for chunk in chunks] == [MORE, MORE, LAST]


LOG = relation(col("id", "BIGINT"), col("name", "VARCHAR"), name="t")


def test_a_change_log_is_carried_out_in_order(tmp_path: Path) -> None:
    log = [(1, "a", "i", 3), (1, "b", "u", 9), (2, "c", "i", 4), (2, "c", "d", 8)]
    schema = pa.schema([("id", pa.int64()), ("name", pa.string()), ("__op", pa.string()), ("__ts", pa.int64())])
    DeltaTable.create(str(tmp_path), schema)
    random.Random(1).shuffle(log)
    write_deltalake(str(tmp_path), pa.table(list(zip(*log, strict=True)), schema=schema), mode="append")
    options = {"cdc_delete_filter": "__op = 'd'", "cdc_order_by": "__ts"}
    made = source(tmp_path, "cdc", of=LOG, version=0, end_version=1, **options)
    assert seen(read_all(made, 3)) == [(1, "a", 1), (2, "c", 1), (2, "c", -1), (1, "b", 1)]
    # Who cleans a log up takes nothing back.
    DeltaTable(str(tmp_path)).delete("id = 1")
    made = source(tmp_path, "cdc", of=LOG, version=1, end_version=2, **options)
    assert seen(read_all(made)) == []


def test_malformed_changes_do_not_move_the_others(tmp_path: Path) -> None:
    strict = relation(col("id", "BIGINT", null=False), col("name", "VARCHAR"), name="t")
    table = pa.table({"id": [1, None, 2], "name": ["a", "b", "c"], "op": ["i", "d", "d"]})
    write_deltalake(str(tmp_path), table.slice(0, 0))
    write_deltalake(str(tmp_path), table, mode="append")
    (chunk,) = read_all(source(tmp_path, "cdc", of=strict, version=0, end_version=1, cdc_delete_filter="op = 'd'"))
    assert seen([chunk]) == [(1, "a", 1), (2, "c", -1)]
    assert chunk.num_parse_errors == 1
    assert "version 1: row 1" in chunk.parse_errors[0].message


def test_all_types(tmp_path: Path) -> None:
    row = (
        True, 1, 2, 3, 4, 1.5, 2.5, Decimal("123456789.123"), "s", "abc", dt.date(2024, 2, 29), "23:59:59.000005",
        dt.datetime(2024, 1, 2, 3, 4, 5, 6), dt.datetime(2024, 1, 2, 3, 4, 5, 6, tzinfo=dt.UTC),
        "6b2a1c1e-0000-4000-8000-000000000000",
    )  # fmt: skip
    kinds = [pa.string() if field.name == "t" else field.type for field in SCALARS.arrow]
    table = pa.table(
        [
            pa.array([value, None if name != "i64" else 0], kind)
            for name, value, kind in zip(SCALARS.column_names, row, kinds, strict=True)
        ],
        names=SCALARS.column_names,
    )
    write_deltalake(str(tmp_path), table)
    first, second = sorted(seen(read_all(source(tmp_path, of=SCALARS))), key=lambda each: -each[4])
    assert first[:-1] == tuple(
        dt.time(23, 59, 59, 5) if name == "t" else value for name, value in zip(SCALARS.column_names, row, strict=True)
    )
    assert [value for value in second if value is not None] == [0, 1]


def test_columns_that_came_later(tmp_path: Path) -> None:
    wide = relation(col("id", "BIGINT"), col("name", "VARCHAR"), col("more", "BIGINT"), name="t")
    written(tmp_path, (1, "a"))
    made = source(tmp_path, "snapshot_and_follow", of=wide)
    assert seen(read_all(made)) == [(1, "a", None, 1)]
    write_deltalake(str(tmp_path), pa.table({"id": [2], "name": ["b"], "more": [7]}), mode="append", schema_mode="merge")
    made._next_look = 0
    assert seen(read_all(made)) == [(2, "b", 7, 1)]
    assert contents(read_all(source(tmp_path, of=wide))) == Counter([(1, "a", None), (2, "b", 7)])


def test_a_table_without_a_column_that_must_be_there(tmp_path: Path) -> None:
    strict = relation(col("key", "BIGINT", null=False), col("name", "VARCHAR"), name="t")
    written(tmp_path, (1, "a"))
    with pytest.raises(ConnectorFailure, match="has no column for 'key', which must not be NULL; its columns: id, name"):
        source(tmp_path, of=strict)


def test_versions_that_are_gone(tmp_path: Path) -> None:
    for n in range(4):
        written(tmp_path, (n, "a"))
    position = source(tmp_path, "follow", version=0)._place
    made = source(tmp_path, "follow", version=0)
    DeltaTable(str(tmp_path)).create_checkpoint()
    for version in range(3):
        (tmp_path / "_delta_log" / f"{version:020}.json").unlink()
    with pytest.raises(ConnectorFailure, match=r"version 1 of the table .* its log file is gone.*delta.logRetentionDuration"):
        read_all(made)
    assert position.version == 0
    with pytest.raises(ConnectorFailure, match="version 1 of the table"):
        read_all(source(tmp_path, version=1))


def test_a_table_that_is_dropped_or_changed_while_it_is_followed(tmp_path: Path) -> None:
    written(tmp_path / "t", (1, "a"))
    made = source(tmp_path / "t", "snapshot_and_follow")
    assert seen(read_all(made)) == [(1, "a", 1)]
    write_deltalake(tmp_path / "t", pa.table({"id": ["x"], "name": [3]}), mode="overwrite", schema_mode="overwrite")
    made._next_look = 0
    with pytest.raises(ConnectorFailure, match=r"version 1 does not have values of the types .*: a column was changed\. Load"):
        read_all(made)
    followed = source(tmp_path / "t", "follow")
    shutil.rmtree(tmp_path / "t")
    written(tmp_path / "t", (1, "a"))
    followed._next_look = 0
    with pytest.raises(ConnectorFailure, match=r"no longer has version 1: the table was dropped, or made again\. Bring it back"):
        read_all(followed)


def test_a_table_that_was_made_again_with_as_many_versions(tmp_path: Path) -> None:
    path = tmp_path / "t"
    written(path, (1, "a"))
    written(path, (2, "b"))
    made = source(path, "snapshot_and_follow")
    chunks = read_all(made)
    assert len(seen(chunks)) == 2
    for later in (0, 1):
        shutil.rmtree(path)
        for number in range(101, 103 + later):
            written(path, (number, "new"))
        made._next_look = 0
        with pytest.raises(
            ConnectorFailure, match=r"version 1 .* is not the one that was read: the table was dropped and made again"
        ):
            read_all(made)
        with pytest.raises(ConnectorFailure, match="is not the one that was read"):
            source(path, "snapshot_and_follow", position=chunks[-1].position)
    earlier = {name: value for name, value in chunks[-1].position.items() if name != "mark"}
    assert seen(read_all(source(path, "snapshot_and_follow", position=earlier))) == [(103, "new", 1)]


def test_a_table_that_was_made_again_while_nobody_read_it(tmp_path: Path) -> None:
    path = tmp_path / "t"
    written(path, (1, "a"))
    written(path, (2, "b"))
    once = read_all(source(path))[-1].position
    followed = read_all(source(path, "snapshot_and_follow"))[-1].position
    unmarked = {name: value for name, value in followed.items() if name != "mark"}
    # The log goes on, so it is the table of a place of an earlier release, which is known from now on.
    made = source(path, "snapshot_and_follow", position=unmarked)
    written(path, (3, "c"))
    assert seen(read_all(made)) == [(3, "c", 1)]
    idle = source(path, "follow", position={**unmarked, "version": 2})
    shutil.rmtree(path)
    written(path, (101, "new"))
    for position in (followed, unmarked):
        with pytest.raises(ConnectorFailure, match=r"version 1 .* is not the one that was read: the table was dropped"):
            source(path, "snapshot_and_follow", position=position)
    assert seen(read_all(source(path, position=once))) == []
    written(path, (102, "new"))
    written(path, (103, "new"))
    idle._next_look = 0
    with pytest.raises(ConnectorFailure, match=r"version 2 .* is not the one that was read"):
        read_all(idle)


def test_lag_is_what_the_log_has_beyond_the_place(tmp_path: Path) -> None:
    written(tmp_path, (1, "a"))
    made = source(tmp_path, "follow", version=0)
    assert isinstance(made, Lagging)
    follower: Any = made
    written(tmp_path, (2, "b"), (3, "c"))
    written(tmp_path, (4, "d"))
    follower._next_look = 0
    assert follower.read(100, 0).records == 2
    assert follower.lag().records == 3
    assert 0 <= follower.lag().seconds < 60
    assert follower.read(100, 0).records == 1
    assert follower.lag().records == 1
    follower._next_look = 0
    assert follower.read(1, 0) is None
    assert follower.lag() == Lag(0, 0, 0.0)


def test_wrong_tables_and_conditions(tmp_path: Path) -> None:
    with pytest.raises(ConnectorFailure, match="there is no Delta table"):
        source(tmp_path / "none")
    written(tmp_path, (1, "a"))
    with pytest.raises(ConnectorFailure, match="the table has no column 'nme'; its columns: id, name"):
        source(tmp_path, filter="nme = 'a'")
    with pytest.raises(ConnectorFailure, match=r"id = 'x'. (needs the package datafusion|is no condition on rows of the table)"):
        source(tmp_path, filter="id = 'x'")
    with pytest.raises(TransientConnectorFailure):
        source("s3://bucket/t", aws_endpoint="http://127.0.0.1:9", allow_http=True, region="r", access_key_id="k",
               secret_access_key="s", max_retries=0, retry_timeout="1s")  # fmt: skip


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"filter": "id ="}, "'filter': 'id =' is no condition"),
        ({"mode": "cdc", "cdc_delete_filter": "id = 1) OR (id = 2"}, "'cdc_delete_filter': .* is no condition"),
        ({"mode": "cdc", "cdc_order_by": "a + 1"}, "'a \\+ 1' is no column"),
        ({"timestamp_column": "at"}, "'timestamp_column' names 'at', which is no column of the table; its columns: id, name"),
    ],
)
def test_options_that_are_refused_when_a_program_is_compiled(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidOptionError, match=message):
        check_input(DeltaInputOptions.model_validate({"uri": "t", "mode": "snapshot", **options}), PEOPLE)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"version": 1, "datetime": "2024-01-01"}, "'version' and 'datetime'"),
        ({"end_version": 1}, "mode 'snapshot' does not follow"),
        ({"mode": "follow", "end_version": 1, "version": 2}, "'end_version' 1 is before 'version' 2"),
        ({"mode": "follow", "snapshot_filter": "id = 1"}, "mode 'follow' reads none"),
        ({"cdc_order_by": "id"}, "is for mode 'cdc'"),
        ({"datetime": "soon"}, "no time such as"),
    ],
)
def test_options_that_do_not_fit_together(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        DeltaInputOptions.model_validate({"uri": "t", "mode": "snapshot", **options})


def test_close_lets_a_reader_come_back(tmp_path: Path) -> None:
    written(tmp_path, (1, "a"))
    made = source(tmp_path, "follow")
    made.close()
    assert made.read(10, 60) is None
    made.close()
