from __future__ import annotations

import dataclasses
import decimal
import errno
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest
from pyspark.sql.types import DecimalType, LongType, StringType, StructField, StructType

from airflow_pipelines.engine.batch import WEIGHT, Batch, weighted
from airflow_pipelines.engine.batch_views import BatchViews
from airflow_pipelines.engine.limits import DEFAULT_LIMITS
from airflow_pipelines.engine.snapshot import Snapshot
from airflow_pipelines.engine.spark.sessions import SparkSessions
from airflow_pipelines.engine.storage import batch_store as storage
from airflow_pipelines.engine.storage.batch_store import BatchStore, Verification
from airflow_pipelines.engine.storage.errors import DamagedError, StorageError, StorageProblem
from airflow_pipelines.engine.trace import Trace

pytestmark = pytest.mark.core

SCHEMA = weighted(
    StructType([StructField("id", LongType()), StructField("name", StringType()), StructField("price", DecimalType(5, 2))])
)


def _batch(*rows: tuple[int | None, str | None, str | None, int]) -> Batch:
    columns = list(zip(*rows, strict=True))
    prices = [None if price is None else decimal.Decimal(price) for price in columns[2]]
    return Batch.in_memory(SCHEMA, pa.table({"id": columns[0], "name": columns[1], "price": prices, WEIGHT: columns[3]}))


def test_a_snapshot_survives_the_way_through_its_manifest(tmp_path: Path) -> None:
    store = BatchStore(tmp_path)
    trace = Trace(SCHEMA).append(_batch((1, "a", "1.50", 1), (None, None, None, 1))).append(_batch((1, "a", "1.50", -1)))
    snapshot = Snapshot(3, {"t": trace}, {"v": {"groups": Trace(SCHEMA)}}).flush(store)
    again = Snapshot.from_manifest(snapshot.to_manifest(), BatchStore(tmp_path))
    assert again.step == 3
    assert [batch.to_arrow().to_pylist() for batch in again.traces["t"].batches] == [b.table.to_pylist() for b in trace.batches]
    assert [batch.insert_only for batch in again.traces["t"].batches] == [True, False]
    assert again.files() == snapshot.files() == store.files()
    assert again.traces["t"].schema == SCHEMA


def test_unflushed_rows_cannot_be_named_in_a_manifest() -> None:
    with pytest.raises(ValueError, match="flushed"):
        Snapshot(1, {"t": Trace(SCHEMA).append(_batch((1, "a", None, 1)))}).to_manifest()


def test_equal_content_is_stored_once_and_a_missing_file_is_named(tmp_path: Path) -> None:
    store = BatchStore(tmp_path)
    first, second = _batch((1, "a", None, 1)).flush(store), _batch((1, "a", None, 1)).flush(store)
    assert first.files == second.files
    manifest = Snapshot(1, {"t": Trace(SCHEMA, (first,))}).to_manifest()
    store.path(first.files[0]).unlink()
    for opened in (store, BatchStore(tmp_path)):
        with pytest.raises(StorageError, match=first.files[0]) as raised:
            Snapshot.from_manifest(manifest, opened)
        assert raised.value.problem is StorageProblem.MISSING


def test_a_full_disk_is_named_and_leaves_nothing_half_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def write_half(_: Any, target: Path, **__: Any) -> None:
        target.write_bytes(b"PAR1")
        raise OSError(errno.ENOSPC, "Error writing bytes to file. Detail: [errno 28] No space left on device")

    store = BatchStore(tmp_path)
    monkeypatch.setattr(pyarrow.parquet, "write_table", write_half)
    with pytest.raises(StorageError, match=rf"^{tmp_path} cannot be used: No space left on device\. Make room") as raised:
        _batch((1, "a", None, 1)).flush(store)
    assert raised.value.problem is StorageProblem.FULL
    assert list((tmp_path / ".staging").iterdir()) == []


def _flipped(path: Path, bit: int) -> None:
    content = bytearray(path.read_bytes())
    content[bit // 8] ^= 1 << bit % 8
    path.write_bytes(content)


def test_a_flipped_bit_or_the_rows_of_another_batch_are_noticed_by_whoever_opens_the_file_next(tmp_path: Path) -> None:
    store = BatchStore(tmp_path)
    (name,), (other,) = _batch((1, "a", None, 1)).flush(store).files, _batch((2, "b", None, 1)).flush(store).files
    path, content = store.path(name), store.path(name).read_bytes()
    for bit in (0, 8 * len(content) // 2, 8 * len(content) - 1):
        _flipped(path, bit)
        with pytest.raises(DamagedError, match=rf"batch file .*{name} is damaged") as raised:
            BatchStore(tmp_path).read([name])
        assert raised.value.path == path
        path.write_bytes(content)
    path.write_bytes(store.path(other).read_bytes())
    for opened in (BatchStore(tmp_path), BatchStore(tmp_path, Verification.ALWAYS)):
        with pytest.raises(DamagedError):
            opened.verify([other, name])
    assert BatchStore(tmp_path, Verification.NEVER).read([name])["id"].to_pylist() == [2]


def test_a_file_is_verified_once_or_each_time(tmp_path: Path) -> None:
    (name,) = _batch((1, "a", None, 1)).flush(BatchStore(tmp_path)).files
    once, always = BatchStore(tmp_path), BatchStore(tmp_path, Verification.ALWAYS)
    once.open(name)
    always.open(name)
    _flipped(once.path(name), 100)
    assert once.open(name) == once.path(name)
    with pytest.raises(DamagedError):
        always.open(name)


def test_a_query_over_a_batch_reads_its_files_only_when_they_are_whole(tmp_path: Path, sessions: SparkSessions) -> None:
    (name,) = _batch((1, "a", None, 1)).flush(BatchStore(tmp_path)).files
    store = BatchStore(tmp_path, Verification.ALWAYS)
    batch = Batch.in_files(SCHEMA, 1, (name,), store, insert_only=True)
    views = BatchViews(sessions)
    query = f"SELECT id FROM {views.table(batch)}"
    assert [row.id for row in views.query(sessions.large, query).collect()] == [1]
    _flipped(store.path(name), 100)
    with pytest.raises(DamagedError):
        views.query(sessions.large, query)


def test_files_are_on_disk_once_a_manifest_names_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[str] = []
    real = storage._sync

    def sync(path: Path) -> None:
        synced.append(path.name)
        real(path)

    monkeypatch.setattr(storage, "_sync", sync)
    store = BatchStore(tmp_path)
    batch, other = _batch((1, "a", None, 1)).flush(store), _batch((2, "b", None, 1)).flush(store)
    assert synced == [], "most files are gone before a manifest names them"
    batch.to_manifest()
    assert synced == [*batch.files, tmp_path.name]
    batch.to_manifest()
    assert not set(other.files) & set(synced)
    assert len(synced) == 2, "once is enough"
    _batch((1, "a", None, 1)).flush(store)
    assert len(synced) == 3, "what a manifest names gives way only to a file that is on disk"


def test_a_torn_file_of_the_same_name_is_replaced(tmp_path: Path) -> None:
    name = _batch((1, "a", None, 1)).flush(BatchStore(tmp_path)).files[0]
    BatchStore(tmp_path).path(name).write_bytes(b"PAR1")
    store = BatchStore(tmp_path)
    assert _batch((1, "a", None, 1)).flush(store).files == (name,)
    assert store.read([name]).num_rows == 1


def test_a_name_cannot_leave_the_folder(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="not the name of a batch file"):
        BatchStore(tmp_path).path("../../etc/passwd")


def test_garbage_collection_spares_what_is_kept_or_alive(tmp_path: Path) -> None:
    store = BatchStore(tmp_path)
    kept = store.write(pa.table({"x": [1]}))
    alive = _batch((1, "a", None, 1)).flush(store)
    store.write(pa.table({"x": [2]}))
    abandoned = BatchStore(tmp_path).staging()
    assert store.garbage_collect(kept) == 1
    assert store.files() == {*kept, *alive.files}
    assert not abandoned.exists()
    del alive
    assert store.garbage_collect(kept) == 1


def test_merging_insert_only_memory_concatenates() -> None:
    trace = Trace(SCHEMA)
    for number in range(10):
        trace = trace.append(_batch((number, "x", None, 1)))
    assert trace.needs_merge(DEFAULT_LIMITS)
    merged = trace.merge(lambda _: pytest.fail("nothing to consolidate"), DEFAULT_LIMITS)
    assert len(merged.batches) == 1
    assert merged.rows == 10


def test_keep_drops_what_belongs_to_other_relations() -> None:
    trace = Trace(SCHEMA)
    snapshot = Snapshot(1, {"t": trace, "v$1": trace, "w": trace}, {"v$1": {"": trace}, "w": {"": trace}})
    kept = snapshot.keep({"t", "v"})
    assert set(kept.traces) == {"t", "v$1"}
    assert set(kept.states) == {"v$1"}


def test_a_large_batch_is_not_written_again_for_a_few_small_ones(tmp_path: Path) -> None:
    store, written = BatchStore(tmp_path), []

    def add(trace: Trace, rows: int) -> Trace:
        return trace.append(Batch(SCHEMA, rows, None, (), store))

    def merged(part: Trace) -> Batch:
        written.append(part.rows)
        return Batch(SCHEMA, part.rows, None, (), store)

    trace = add(Trace(SCHEMA), 10_000_000)
    for _ in range(1000):
        trace = add(trace, 50_000)
        if trace.needs_merge(DEFAULT_LIMITS):
            trace = trace.merge(merged, DEFAULT_LIMITS)
    assert trace.rows == 60_000_000
    assert len(trace.batches) <= 9
    # Writing all of it at each merge would be some 4 thousand million rows.
    assert sum(written) < 6 * 50_000_000


def test_large_batches_in_memory_are_not_copied_again_for_a_few_small_ones() -> None:
    copied = []
    one = _batch(*((number, "a", "1.50", 1) for number in range(10)))
    limits = dataclasses.replace(DEFAULT_LIMITS, small_rows=5)

    def merged(part: Trace) -> Batch:
        copied.append(part.rows)
        return Batch.in_memory(SCHEMA, pa.concat_tables([batch.table for batch in part.batches]))

    trace = Trace(SCHEMA, (Batch.in_memory(SCHEMA, pa.concat_tables([one.table] * 1000)),))
    for _ in range(500):
        trace = trace.append(dataclasses.replace(one))
        if trace.needs_merge(limits):
            trace = trace.merge(merged, limits)
    assert trace.rows == 15_000
    assert len(trace.batches) <= limits.merges.memory_batches
    # Copying all of it at each merge would be some million rows.
    assert sum(copied) < 8 * 5_000


def test_rows_after_an_empty_piece_of_a_table_are_read_too(sessions: SparkSessions) -> None:
    piece = _batch((1, "a", "1.50", 1), (2, "b", None, 1)).table
    batch = Batch.in_memory(SCHEMA, pa.concat_tables([piece, piece.slice(0, 0), piece]))
    assert batch.frame(sessions.small).count() == 4
