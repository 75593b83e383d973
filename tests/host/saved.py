"""A small storage folder with everything in it, made and read back without Spark."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow as pa
from pyspark.sql.types import IntegerType, LongType, StringType, StructField, StructType

from airflow_pipelines.contract.statuses import CrashGuarantee
from airflow_pipelines.engine.batch import WEIGHT, Batch, weighted
from airflow_pipelines.engine.snapshot import Snapshot
from airflow_pipelines.engine.storage.checkpoint import CheckpointContents, CheckpointInfo, Counters
from airflow_pipelines.engine.storage.connector_state import ConnectorState, InputCounts, InputState
from airflow_pipelines.engine.trace import Trace
from airflow_pipelines.host.checkpoints.durability import INLINE_BYTES, Durability, SavedState
from airflow_pipelines.host.state.options import RuntimeOptions
from airflow_pipelines.program.fingerprints import Fingerprints
from airflow_pipelines.program.identity import ProgramIdentity
from airflow_pipelines.program.sources import ProgramSource

SCHEMA = StructType([StructField("id", LongType()), StructField("v", IntegerType()), StructField("name", StringType())])
SOURCE = ProgramSource("CREATE TABLE t (id BIGINT, v INT, name VARCHAR)")
PROGRAM = ProgramIdentity(SOURCE, Fingerprints(tables={"t": "f"}), 2**63 + 11)
OPTIONS = RuntimeOptions(fault_tolerance=CrashGuarantee.EXACTLY_ONCE)


@dataclass
class Written:
    """A pipeline that only remembers its rows, with the durable state that a real one keeps."""

    folder: Path
    options: RuntimeOptions = OPTIONS

    def __post_init__(self) -> None:
        self.durability = Durability(self.folder, self.options)
        saved = self.durability.saved_state()
        self.snapshot = Snapshot(0, {"t": Trace(weighted(SCHEMA))})
        if saved is not None:
            rows = Batch.in_memory(weighted(SCHEMA), pa.table(_columns(rows_of(self.durability, saved))))
            self.snapshot = Snapshot(saved.step, {"t": Trace(weighted(SCHEMA)).append(rows)})

    def step(self, rows: int = 10, width: int = 4) -> None:
        """Commit a step of rows with texts of a width: those of many bytes go to a file, others into the journal."""
        number = self.snapshot.step + 1
        table = pa.table(
            {
                "id": pa.array([number * 1000 + row for row in range(rows)], pa.int64()),
                "v": pa.array([row % 7 or None for row in range(rows)], pa.int32()),
                "name": pa.array([f"{number}-{row}".ljust(width, "x") for row in range(rows)]),
                WEIGHT: pa.array([1] * rows, pa.int64()),
            }
        )
        delta = Batch.in_memory(weighted(SCHEMA), table)
        after = Snapshot(number, {"t": self.snapshot.traces["t"].append(delta)})
        self.durability.commit(number, {"t": delta}, _positions(number), _counters(after), PROGRAM, 1.5, after)
        self.snapshot = after

    def contents(self) -> CheckpointContents:
        self.snapshot = flushed = self.snapshot.flush(self.durability.batches)
        step = flushed.step
        files = tuple(sorted(flushed.files()))
        return CheckpointContents(
            PROGRAM,
            step,
            flushed.to_manifest(),
            files,
            _positions(step),
            _counters(flushed),
        )

    def checkpoint(self) -> CheckpointInfo:
        info = self.durability.save_checkpoint(self.contents())
        self.durability.collect_garbage()
        return info

    def close(self) -> None:
        self.durability.close()


def make_store(folder: Path, *, recovery_point: bool = False) -> list[CheckpointInfo]:
    """Two checkpoints and a journal on the newer one, of 12 steps with 10 rows each; the journal has rows inline and in files.

    ``recovery_point``: the journal is on one, which was made after the checkpoints.
    """
    pipeline = Written(folder)
    wide = 2 * INLINE_BYTES // 10
    for width in (4, wide, 4):
        pipeline.step(width=width)
    older = pipeline.checkpoint()
    for width in (wide, 4, wide):
        pipeline.step(width=width)
    newer = pipeline.checkpoint()
    if recovery_point:
        pipeline.durability.save_recovery_point(pipeline.contents())
    for width in (4, wide, 4, 4, wide, 4):
        pipeline.step(width=width)
    pipeline.close()
    return [older, newer]


def read_store(folder: Path, go_back_to: UUID | None = None, options: RuntimeOptions = OPTIONS) -> tuple[Any, ...]:
    """All that a start takes from a storage folder: rows, step, positions, counters, program."""
    durability = Durability(folder, options)
    try:
        saved = durability.saved_state() if go_back_to is None else durability.go_back(go_back_to)[0]
        if saved is None:
            return ()
        rows = rows_of(durability, saved)
        return rows, saved.step, saved.connectors, saved.counters, saved.program, saved.initial_start_time
    finally:
        durability.close()


def rows_of(durability: Durability, saved: SavedState) -> list[tuple[Any, ...]]:
    """The rows of the table after the last committed step."""
    batches: list[Batch] = []
    if saved.base is not None:
        batches += Snapshot.from_manifest(saved.base.contents.snapshot, durability.batches).traces["t"].batches
    for record in saved.records:
        batches += durability.deltas_of(record, {"t": weighted(SCHEMA)}).values()
    return sorted((tuple(row.values()) for batch in batches for row in batch.to_arrow().to_pylist()), key=str)


def _columns(rows: list[tuple[Any, ...]]) -> dict[str, Any]:
    kinds = {"id": pa.int64(), "v": pa.int32(), "name": pa.string(), WEIGHT: pa.int64()}
    return {name: pa.array([row[at] for row in rows], kind) for at, (name, kind) in enumerate(kinds.items())}


def _positions(step: int) -> dict[str, ConnectorState]:
    return {"t.c": InputState("t", position={"offset": step * 1000}, counts=InputCounts(records=step * 10))}


def _counters(snapshot: Snapshot) -> Counters:
    rows = snapshot.traces["t"].rows
    return Counters(input_records=rows, processed_records=rows, initiated_steps=snapshot.step, completed_steps=snapshot.step)
