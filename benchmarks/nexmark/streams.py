"""The events on disk: written once, as Parquet, in the layouts in which the systems read them fastest."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from airflow_pipelines.connectors.transports.nexmark.generator import Generator

ROW_GROUP = 100_000
"""Rows that a reader of one batch may take for itself; the others of the batch's rows are for its other threads."""
CHUNK = 500_000
"""So many events are made at a time, whatever the sizes of the files."""


@dataclass(frozen=True)
class Stream:
    """``events`` events in a folder.

    ``folder/whole/<table>/``: one file per reader, every row in the file whose turn it is, so that readers side by side go through
    event time together and no event is late. ``folder/batches/<size>/<number>/<table>.parquet``: one file per batch of events.
    """

    folder: Path
    events: int

    @property
    def whole(self) -> Path:
        """The folder with a folder per table."""
        return self.folder / "whole"

    def batches(self, size: int, events: int | None = None) -> list[Path]:
        """Return the folders of the batches of ``size`` events, in order; of the first ``events`` events if that is given."""
        return [self.batch(size, number) for number in range((events or self.events) // size)]

    def batch(self, size: int, number: int) -> Path:
        """Return the folder of one batch of ``size`` events."""
        return self.folder / "batches" / str(size) / f"{number:06d}"

    def side_input(self) -> Path:
        """Return the file of the bounded table."""
        return self.whole / "side_input" / "part-0.parquet"


def write_stream(folder: Path, events: int, sizes: tuple[int, ...], readers: int, generator: Generator | None = None) -> Stream:
    """Write a stream.

    :param folder: where to; must be empty or absent
    :param events: how many events; a multiple of every size
    :param sizes: sizes of batches, in events
    :param readers: files per table in the layout for readers that work side by side
    """
    stream, made = Stream(folder, events), generator or Generator()
    parts: dict[str, list[pa.Table]] = {"person": [], "auction": [], "bid": []}
    for chunk in made.batches(events, CHUNK):
        for name, table in chunk.tables.items():
            parts[name].append(table)
    tables = {name: pa.concat_tables(chunks).combine_chunks() for name, chunks in parts.items()}
    for name, table in tables.items():
        for reader in range(readers):
            part = table.take(np.arange(reader, table.num_rows, readers))
            # One row group per file: a reader that splits files would otherwise begin in the middle of event time.
            _write(part, stream.whole / name / f"part-{reader}.parquet", part.num_rows)
    _write(side_input(), stream.side_input())
    for size in sizes:
        write_batches(stream, size, range(events // size), made)
    return stream


def write_batches(stream: Stream, size: int, numbers: range, generator: Generator | None = None) -> list[Path]:
    """Write some batches of a stream in one more size.

    :param stream: the stream
    :param size: events in each batch
    :param numbers: which batches, counted from the stream's beginning
    :return: their folders
    """
    made = generator or Generator()
    for number in numbers:
        for name, table in made.events(number * size, size).tables.items():
            _write(table, stream.batch(size, number) / f"{name}.parquet")
    return [stream.batch(size, number) for number in numbers]


def _write(table: Any, path: Path, row_group: int = ROW_GROUP) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, path, compression="snappy", row_group_size=row_group)


def side_input(rows: int = 10_000) -> pa.Table:
    """Return the bounded table in which query 13 looks up bids' auctions."""
    return pa.table({"key": pa.array(range(rows), pa.int64()), "value": [str(at) for at in range(rows)]})
