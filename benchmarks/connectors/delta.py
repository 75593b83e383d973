"""Delta tables: a step of 1,000 changes merged into 10 million rows, next to a ``MERGE`` of the same rows by the library alone.

Both have a table of their own with the same rows, and take turns. Then all rows are read into changes of a table, next to the
library's own reading of them.
"""

from __future__ import annotations

import shutil
import statistics
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
from deltalake import DeltaTable

from airflow_pipelines.common.references import NO_REFERENCES
from airflow_pipelines.connectors.base import OutputTransport
from airflow_pipelines.connectors.changes import ChangesInMemory
from airflow_pipelines.connectors.definition import PipelineReference
from airflow_pipelines.connectors.opening import open_input, open_output
from airflow_pipelines.program.connectors import Connector, ConnectorDirection
from airflow_pipelines.rows.schema import Column, RelationSchema
from airflow_pipelines.rows.types import ColumnType
from airflow_pipelines.rows.zsets import WEIGHT
from benchmarks.measure import Bound, Measurement, timed
from benchmarks.options import Options

_ROWS: Final = 10_000_000
_CHANGED: Final = 1_000
_ROUNDS: Final = 5
_TARGET: Final = 1.2
_CHUNK: Final = 100_000
_SCHEMA: Final = RelationSchema(
    "v",
    (
        Column("id", ColumnType("BIGINT")),
        Column("part", ColumnType("BIGINT")),
        Column("amount", ColumnType("DOUBLE")),
        Column("note", ColumnType("VARCHAR")),
    ),
)
_KEY: Final = ("id",)
_PIPELINE: Final = PipelineReference("benchmark", "benchmark")


def measure(options: Options) -> list[Measurement]:  # noqa: ARG001 - one size fits
    """Measure all."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        return [*_merged(folder), *_read(folder)]


def _merged(folder: Path) -> list[Measurement]:
    dice = np.random.default_rng(1)
    state = _rows(np.arange(_ROWS), dice)
    ours, bare = folder / "ours", folder / "bare"
    output = _output(ours)
    output.open(resumed=False)
    with timed() as loading:
        output.write(1, ChangesInMemory(state.append_column(WEIGHT, pa.array(np.ones(_ROWS, np.int64))), _KEY))
    shutil.copytree(ours, bare)
    took: dict[str, list[float]] = {"ours": [], "bare": []}
    for round_number in range(_ROUNDS):
        ids = dice.choice(_ROWS, _CHANGED, replace=False)
        before, after = state.take(pa.array(ids)), _rows(ids, dice)
        state = _replaced(state, ids, after)
        weights = pa.array(np.repeat([-1, 1], _CHANGED))
        changes = ChangesInMemory(pa.concat_tables([before, after]).append_column(WEIGHT, weights), _KEY)
        # Whoever comes second finds the files in the cache, so that each does so as often.
        for who in ("ours", "bare") if round_number % 2 else ("bare", "ours"):
            with timed() as watch:
                if who == "ours":
                    output.write(2 + round_number, changes)
                else:
                    _bare(bare, after)
            took[who].append(watch.seconds)
    _check(ours, bare)
    output.close()
    median = {who: statistics.median(times) for who, times in took.items()}
    return [
        Measurement("connectors.delta.merged.load_rows_per_s", _ROWS / loading.seconds, "rows/s", bound=Bound.AT_LEAST),
        Measurement("connectors.delta.merged.step_s", median["ours"], "s"),
        Measurement("connectors.delta.merged.bare_merge_s", median["bare"], "s"),
        Measurement("connectors_delta_merged_over_bare_merge", median["ours"] / median["bare"], "x", _TARGET, Bound.AT_MOST),
    ]


def _bare(path: Path, rows: pa.Table) -> None:
    merge = DeltaTable(str(path)).merge(rows, "t.id = s.id", source_alias="s", target_alias="t")
    merge.when_matched_update_all().when_not_matched_insert_all().execute()


def _check(ours: Path, bare: Path) -> None:
    """Both have the same rows."""
    one, other = (_sums(path) for path in (ours, bare))
    if one != other:
        raise RuntimeError(f"the two tables differ: {one} and {other}")


def _sums(path: Path) -> tuple[int, int, int]:
    table = DeltaTable(str(path)).to_pyarrow_table(columns=["id", "part"])
    ids, parts = table.column("id").to_numpy(), table.column("part").to_numpy()
    return table.num_rows, int(ids.sum()), int((ids * parts % 1_000_003).sum())


def _read(folder: Path) -> list[Measurement]:
    """Measure reading a snapshot by the connector and by the library alone. Both end in Arrow's memory."""
    times, plain = [], []
    for _ in range(3):
        connector = Connector(
            "v", "c", ConnectorDirection.INPUT, "delta_table_input", {"uri": str(folder / "ours"), "mode": "snapshot"}
        )
        source = open_input(connector, _SCHEMA, NO_REFERENCES, _PIPELINE)
        with timed() as watch:
            source.open(None)
            rows = sum(_records(source))
        source.close()
        if rows != _ROWS:
            raise RuntimeError(f"{rows} rows were read of {_ROWS}")
        times.append(watch.seconds)
        with timed() as watch:
            DeltaTable(str(folder / "ours")).to_pyarrow_table()
        plain.append(watch.seconds)
    ours, library = statistics.median(times), statistics.median(plain)
    return [
        Measurement("connectors.delta.snapshot.rows_per_s", _ROWS / ours, "rows/s", bound=Bound.AT_LEAST),
        Measurement("connectors.delta.snapshot.ratio", ours / library, "x"),
    ]


def _records(source: Any) -> Iterator[int]:
    while True:
        chunk = source.read(_CHUNK, 60)
        yield chunk.records
        if chunk.end_of_input:
            return


def _output(path: Path) -> OutputTransport:
    config = {"uri": str(path), "write": "merged"}
    return open_output(
        Connector("v", "c", ConnectorDirection.OUTPUT, "delta_table_output", config), _SCHEMA, NO_REFERENCES, _PIPELINE, _KEY
    )


def _rows(ids: np.ndarray[Any, Any], dice: np.random.Generator) -> pa.Table:
    count = len(ids)
    notes = pa.array([f"note {number}" for number in range(1000)]).take(pa.array(dice.integers(0, 1000, count)))
    return pa.table({"id": ids, "part": dice.integers(0, 1000, count), "amount": dice.random(count), "note": notes})


def _replaced(state: pa.Table, ids: np.ndarray[Any, Any], after: pa.Table) -> pa.Table:
    """Return the rows with those of ``after`` in place of the rows with the same number."""
    places = np.arange(state.num_rows)
    places[ids] = state.num_rows + np.arange(len(ids))
    return pa.concat_tables([state, after]).take(pa.array(places)).combine_chunks()


if __name__ == "__main__":
    for figure in measure(Options()):
        print(f"{figure.name} {figure.value:.3f} {figure.unit}")
