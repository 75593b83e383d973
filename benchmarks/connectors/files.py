"""Reading files: Parquet from S3 next to the same files on the disk, compressed text next to plain text, many small objects.

The server of S3 runs in a process of its own on the same machine, so that its work costs the reader's time as well.
"""

from __future__ import annotations

import gzip
import logging
import multiprocessing
import os
import statistics
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from airflow_pipelines.connectors.base import InputTransport
from airflow_pipelines.connectors.definition import PipelineReference
from airflow_pipelines.connectors.opening import open_input
from airflow_pipelines.engine.schema import RelationSchema
from airflow_pipelines.program.column_types import ColumnType
from airflow_pipelines.program.connectors import Connector, ConnectorDirection
from airflow_pipelines.program.relations import Column
from airflow_pipelines.references import NO_REFERENCES
from benchmarks.measure import Bound, Measurement, timed
from benchmarks.options import Options

_ROWS: Final = 8_000_000
_FILES: Final = 8
_SMALL_OBJECTS: Final = 1_000
_ROUNDS: Final = 3
_BUCKET: Final = "benchmark"
_TARGET: Final = 1.3
_SCHEMA: Final = RelationSchema(
    "t",
    tuple(
        Column(name, ColumnType(kind, True))
        for name, kind in (("id", "BIGINT"), ("amount", "DOUBLE"), ("at", "TIMESTAMP"), ("note", "VARCHAR"))
    ),
)


def measure(options: Options) -> list[Measurement]:  # noqa: ARG001 - one size fits
    """Measure all."""
    with tempfile.TemporaryDirectory() as name, _server() as endpoint:
        folder = Path(name)
        _make(folder, endpoint)
        return [*_parquet(folder, endpoint), *_text(folder), *_small(endpoint)]


def _parquet(folder: Path, endpoint: str) -> list[Measurement]:
    """The same files in turns, so that what else the machine does is the same for both."""
    local: list[float] = []
    remote: list[float] = []
    for _ in range(_ROUNDS):
        local.append(_seconds(_local(folder / "parquet", "parquet"), _ROWS))
        remote.append(_seconds(_remote(endpoint, "parquet/", "parquet"), _ROWS))
    ratio = statistics.median(remote) / statistics.median(local)
    return [
        Measurement("connectors.parquet.local_s", statistics.median(local), "s"),
        Measurement("connectors.parquet.s3_s", statistics.median(remote), "s"),
        Measurement("connectors_parquet_s3_over_local", ratio, "x", _TARGET, Bound.AT_MOST),
    ]


def _text(folder: Path) -> list[Measurement]:
    plain = statistics.median(_seconds(_local(folder / "t.csv", "csv"), _ROWS // 4) for _ in range(_ROUNDS))
    packed = statistics.median(_seconds(_local(folder / "t.csv.gz", "csv"), _ROWS // 4) for _ in range(_ROUNDS))
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
    config = {"bucket_name": _BUCKET, "prefix": prefix, "region": "us-east-1", "endpoint_url": endpoint, **_keys()}
    return _opened("s3_input", config, format_name)


def _opened(transport: str, config: dict[str, Any], format_name: str) -> InputTransport:
    connector = Connector("t", "c", ConnectorDirection.INPUT, transport, config, format_name)
    return open_input(connector, _SCHEMA, NO_REFERENCES, PipelineReference("p", "benchmark"))


def _keys() -> dict[str, str]:
    return {"aws_access_key_id": "benchmark", "aws_secret_access_key": "benchmark"}


def _make(folder: Path, endpoint: str) -> None:
    import boto3

    client = boto3.client("s3", endpoint_url=endpoint, region_name="us-east-1", **_keys())
    client.create_bucket(Bucket=_BUCKET)
    (folder / "parquet").mkdir()
    random = np.random.default_rng(1)
    rows = _ROWS // _FILES
    for number in range(_FILES):
        table = pa.table(
            {
                "id": np.arange(number * rows, (number + 1) * rows),
                "amount": random.random(rows),
                "at": random.integers(0, 1 << 50, rows).astype("datetime64[us]"),
                "note": pa.array([f"note {value}" for value in random.integers(0, 1_000_000, rows)]),
            }
        )
        path = folder / "parquet" / f"{number:03}.parquet"
        pq.write_table(table, path, row_group_size=125_000)
        client.upload_file(str(path), _BUCKET, f"parquet/{path.name}")
    lines = "".join(f"{number},{number / 7},2026-01-02 03:04:05,note {number}\n" for number in range(_ROWS // 4)).encode()
    (folder / "t.csv").write_bytes(lines)
    (folder / "t.csv.gz").write_bytes(gzip.compress(lines, 6))
    for number in range(_SMALL_OBJECTS):
        client.put_object(Bucket=_BUCKET, Key=f"small/{number:05}", Body=f"{number},1.5,2026-01-02 03:04:05,x\n".encode())


@contextmanager
def _server() -> Iterator[str]:
    """A server that speaks S3, and its address."""
    ours, theirs = multiprocessing.get_context("spawn").Pipe()
    process = multiprocessing.get_context("spawn").Process(target=_serve, args=(theirs,), daemon=True)
    process.start()
    try:
        yield ours.recv()
    finally:
        process.terminate()
        process.join(10)


def _serve(address: Connection) -> None:
    os.environ["AWS_ACCESS_KEY_ID"] = os.environ["AWS_SECRET_ACCESS_KEY"] = "benchmark"
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    address.send(f"http://{host}:{port}")
    while True:
        address.poll(3600)
