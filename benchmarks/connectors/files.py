"""Reading files: Parquet from S3 next to the same files on the disk, compressed text next to plain text, many small objects.

The server of S3 runs in a process of its own on the same machine, so that its work costs the reader's time as well. What the
libraries alone take for the same objects is measured beside: bytes by pyarrow's client and by s3fs, rows by pyarrow.
"""

from __future__ import annotations

import gzip
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow.fs import S3FileSystem as PyarrowS3

from airflow_pipelines.common.references import NO_REFERENCES
from airflow_pipelines.connectors.base import InputTransport
from airflow_pipelines.connectors.definition import PipelineReference
from airflow_pipelines.connectors.opening import open_input
from airflow_pipelines.program.connectors import Connector, ConnectorDirection
from airflow_pipelines.rows.schema import Column, RelationSchema
from airflow_pipelines.rows.types import ColumnType
from benchmarks.measure import Bound, Measurement, timed
from benchmarks.options import Options
from tools.object_server import object_server

_ROWS: Final = 8_000_000
_FILES: Final = 8
_SMALL_OBJECTS: Final = 1_000
_ROUNDS: Final = 5
_TEXT_ROUNDS: Final = 3
_BUCKET: Final = "benchmark"
_TARGET: Final = 1.3
_KEY: Final = "benchmark"
_KEYS: Final = {"aws_access_key_id": _KEY, "aws_secret_access_key": _KEY}
_SCHEMA: Final = RelationSchema(
    "t",
    tuple(
        Column(name, ColumnType(kind, True))
        for name, kind in (("id", "BIGINT"), ("amount", "DOUBLE"), ("at", "TIMESTAMP"), ("note", "VARCHAR"))
    ),
)


def measure(options: Options) -> list[Measurement]:  # noqa: ARG001 - one size fits
    """Measure all."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _make(folder)
        with object_server(folder) as endpoint:
            return [*_parquet(folder / _BUCKET, endpoint), *_text(folder), *_small(endpoint)]


def _parquet(folder: Path, endpoint: str) -> list[Measurement]:
    """Read the same files in each way in turns, so that other load of the machine is the same for all. The first turn warms up."""
    keys = {"access_key": _KEY, "secret_key": _KEY, "endpoint_override": endpoint, "region": "us-east-1"}
    ways: Mapping[str, Callable[[], float]] = {
        "local": lambda: _seconds(_local(folder / "parquet", "parquet"), _ROWS),
        "s3": lambda: _seconds(_remote(endpoint, "parquet/", "parquet"), _ROWS),
        "s3_pyarrow": lambda: _rows_by_pyarrow(PyarrowS3(**keys)),
        "s3_bytes_pyarrow": lambda: _bytes_by(PyarrowS3(**keys).open_input_stream),
        "s3_bytes_s3fs": lambda: _bytes_by(_s3fs(endpoint).open),
    }
    took: dict[str, list[float]] = {}
    processor: dict[str, list[float]] = {}
    for turn in range(_ROUNDS + 1):
        for name, way in ways.items():
            before = time.process_time()
            seconds = way()
            if turn:
                took.setdefault(name, []).append(seconds)
                processor.setdefault(name, []).append(time.process_time() - before)
    ratio = statistics.median(remote / local for remote, local in zip(took["s3"], took["local"], strict=True))
    return [
        *(Measurement(f"connectors.parquet.{name}_s", statistics.median(times), "s") for name, times in took.items()),
        *(Measurement(f"connectors.parquet.{name}_cpu_s", statistics.median(times), "s") for name, times in processor.items()),
        Measurement("connectors_parquet_s3_over_local", ratio, "x", _TARGET, Bound.AT_MOST),
    ]


def _rows_by_pyarrow(filesystem: PyarrowS3) -> float:
    """Seconds in which pyarrow reads the objects as a table, and nothing else is done with them."""
    with timed() as watch:
        rows = sum(pq.read_table(f"{_BUCKET}/{name}", filesystem=filesystem).num_rows for name in _object_names())
    if rows != _ROWS:
        raise RuntimeError(f"pyarrow read {rows} of {_ROWS} rows")
    return watch.seconds


def _bytes_by(open_object: Callable[[str], Any]) -> float:
    """Seconds in which a client reads the bytes of the objects, one after the other."""
    with timed() as watch:
        for name in _object_names():
            with open_object(f"{_BUCKET}/{name}") as file:
                file.read()
    return watch.seconds


def _s3fs(endpoint: str) -> Any:
    from s3fs import S3FileSystem

    return S3FileSystem(
        key=_KEY, secret=_KEY, endpoint_url=endpoint, client_kwargs={"region_name": "us-east-1"}, skip_instance_cache=True
    )


def _object_names() -> list[str]:
    return [f"parquet/{number:03}.parquet" for number in range(_FILES)]


def _text(folder: Path) -> list[Measurement]:
    plain = statistics.median(_seconds(_local(folder / "t.csv", "csv"), _ROWS // 4) for _ in range(_TEXT_ROUNDS))
    packed = statistics.median(_seconds(_local(folder / "t.csv.gz", "csv"), _ROWS // 4) for _ in range(_TEXT_ROUNDS))
    return [
        Measurement("connectors.csv.rows_per_s", _ROWS / 4 / plain, "rows/s"),
        Measurement("connectors.csv.gzip_over_plain", packed / plain, "x"),
    ]


def _small(endpoint: str) -> list[Measurement]:
    seconds = _seconds(_remote(endpoint, "small/", "csv"), _SMALL_OBJECTS)
    return [Measurement("connectors.s3.small_objects_per_s", _SMALL_OBJECTS / seconds, "objects/s")]


def _seconds(source: InputTransport, rows: int) -> float:
    """How long a source takes to be opened and read to its end."""
    found = 0
    with timed() as watch:
        source.open(None)
        while True:
            chunk = source.read(100_000, 10)
            if chunk is None:
                raise RuntimeError("the source has nothing more, and has not ended")
            found += chunk.records
            if chunk.end_of_input:
                break
    source.close()
    if found != rows:
        raise RuntimeError(f"read {found} of {rows} rows")
    return watch.seconds


def _local(path: Path, format_name: str) -> InputTransport:
    return _opened("file_input", {"path": str(path)}, format_name)


def _remote(endpoint: str, prefix: str, format_name: str) -> InputTransport:
    config = {"bucket_name": _BUCKET, "prefix": prefix, "region": "us-east-1", "endpoint_url": endpoint, **_KEYS}
    return _opened("s3_input", config, format_name)


def _opened(transport: str, config: dict[str, Any], format_name: str) -> InputTransport:
    connector = Connector("t", "c", ConnectorDirection.INPUT, transport, config, format_name)
    return open_input(connector, _SCHEMA, NO_REFERENCES, PipelineReference("p", "benchmark"))


def _make(folder: Path) -> None:
    """Write the files; those of the bucket are objects as well."""
    bucket = folder / _BUCKET
    (bucket / "parquet").mkdir(parents=True)
    (bucket / "small").mkdir()
    random = np.random.default_rng(1)
    rows = _ROWS // _FILES
    for number, name in enumerate(_object_names()):
        table = pa.table(
            {
                "id": np.arange(number * rows, (number + 1) * rows),
                "amount": random.random(rows),
                "at": random.integers(0, 1 << 50, rows).astype("datetime64[us]"),
                "note": pa.array([f"note {value}" for value in random.integers(0, 1_000_000, rows)]),
            }
        )
        pq.write_table(table, bucket / name, row_group_size=125_000)
    lines = "".join(f"{number},{number / 7},2026-01-02 03:04:05,note {number}\n" for number in range(_ROWS // 4)).encode()
    (folder / "t.csv").write_bytes(lines)
    (folder / "t.csv.gz").write_bytes(gzip.compress(lines, 6))
    for number in range(_SMALL_OBJECTS):
        (bucket / "small" / f"{number:05}").write_bytes(f"{number},1.5,2026-01-02 03:04:05,x\n".encode())


if __name__ == "__main__":
    for figure in measure(Options()):
        print(f"{figure.name} {figure.value:.3f} {figure.unit}")
