"""JSON documents of ten members to columns, by one core: our reader, pyarrow's alone, orjson, and Spark's ``from_json``."""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from benchmarks.connectors.json_readers import READERS, SPARK_COLUMNS, check, documents
from benchmarks.connectors.spark import spark_with_kafka
from benchmarks.measure import Bound, Measurement, timed
from benchmarks.options import Options

ROWS: Final = 1_000_000
BLOCK: Final = 20_000
"""So many documents our connector of Kafka reads at once."""
TARGET_PER_S: Final = 300_000.0


def measure(options: Options) -> list[Measurement]:
    """Measure all, in turns.

    :param options: how often each figure is taken
    """
    values = documents(ROWS)
    blocks = [values[begin : begin + BLOCK] for begin in range(0, ROWS, BLOCK)]
    rates: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory(prefix="pipelines-json-") as folder, spark_with_kafka() as spark:
        path = Path(folder) / "documents.parquet"
        # One group of rows, so that Spark has one task for them.
        pq.write_table(pa.table({"value": pa.array(values, pa.binary())}), path, row_group_size=ROWS)
        for turn in range(options.repeats + 1):
            for name in READERS:
                rates.setdefault(name, []).append(_rate(name, blocks, checked=turn == 0))
            rates.setdefault("spark", []).append(_spark_rate(spark, path))
    # The first turn warms up.
    return measurements({name: statistics.median(found[1:]) for name, found in rates.items()})


def measurements(rates: Mapping[str, float]) -> list[Measurement]:
    """Return the figures that follow from rates.

    :param rates: rows per second, by reader
    """
    found = [
        Measurement(f"connectors.json.{name}_per_s", rate, "1/s", bound=Bound.AT_LEAST)
        for name, rate in rates.items()
        if name != "ours"
    ]
    ours = Measurement("connectors_json_rows_per_s", rates["ours"], "1/s", TARGET_PER_S, Bound.AT_LEAST)
    return [*found, ours]


def _rate(name: str, blocks: Sequence[Sequence[bytes]], *, checked: bool) -> float:
    read = READERS[name]
    with timed() as watch:
        tables = [read(block) for block in blocks]
    if checked:
        check(pa.concat_tables(tables), ROWS)
    return ROWS / watch.seconds


def _spark_rate(spark: SparkSession, path: Path) -> float:
    documents = spark.read.parquet(str(path)).coalesce(1)
    rows = documents.selectExpr(f"FROM_JSON(CAST(value AS STRING), '{SPARK_COLUMNS}') AS row").select("row.*")
    with timed() as watch:
        rows.write.format("noop").mode("overwrite").save()
    return ROWS / watch.seconds


if __name__ == "__main__":
    for figure in measure(Options(repeats=3)):
        print(f"{figure.name} {figure.value:.3f} {figure.unit}")
