"""Reading objects of a bucket: one, some, thousands; from any position; what is refused, missing and away."""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Callable
from typing import Any

import boto3
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pydantic import ValidationError

from airflow_pipelines.common.references import NO_REFERENCES
from airflow_pipelines.connectors.base import ConnectorFailure, InputChunk, InputTransport, TransientConnectorFailure
from airflow_pipelines.connectors.definition import PipelineReference
from airflow_pipelines.connectors.opening import open_input
from airflow_pipelines.connectors.transports.s3_input import S3InputOptions
from airflow_pipelines.program.connectors import Connector, ConnectorDirection
from tests.connectors.relations import GRADES
from tests.fixtures.s3 import Bucket

pytestmark = pytest.mark.processes


@pytest.fixture
def bucket(s3: Callable[[], Bucket]) -> Bucket:
    return s3()


def put(bucket: Bucket, key: str, data: bytes) -> None:
    put_all(bucket, {key: data})


def put_all(bucket: Bucket, objects: dict[str, bytes]) -> None:
    client = boto3.client(
        "s3",
        endpoint_url=bucket.endpoint,
        region_name="us-east-1",
        aws_access_key_id=bucket.access_key,
        aws_secret_access_key=bucket.secret_key,
    )
    for key, data in objects.items():
        client.put_object(Bucket=bucket.name, Key=key, Body=data)


def s3_input(bucket: Bucket, format_name: str = "csv", *, position: Any = None, **options: Any) -> InputTransport:
    keys = {"aws_access_key_id": bucket.access_key, "aws_secret_access_key": bucket.secret_key, "region": "us-east-1"}
    config = {"bucket_name": bucket.name, "endpoint_url": bucket.endpoint, **keys, **options}
    given = {name: value for name, value in config.items() if value is not None}
    source = open_input(
        Connector("grades", "c", ConnectorDirection.INPUT, "s3_input", given, format_name),
        GRADES,
        NO_REFERENCES,
        PipelineReference("p", "test"),
    )
    source.open(None if position is None else json.loads(json.dumps(position)))
    return source


def read_all(source: InputTransport, max_records: int = 1_000_000) -> list[InputChunk]:
    chunks: list[InputChunk] = []
    while not chunks or not chunks[-1].end_of_input:
        chunk = source.read(max_records, 5)
        assert chunk is not None
        chunks.append(chunk)
    source.close()
    return chunks


def ids(chunks: list[InputChunk]) -> list[int]:
    return [number for chunk in chunks if chunk.changes for number in chunk.changes.rows["student_id"].to_pylist()]


@pytest.mark.core
def test_one_object_some_and_all_with_a_prefix(bucket: Bucket) -> None:
    for key, number in (("a/1.csv", 1), ("a/2.csv", 2), ("a/deep/3.csv", 3), ("b.csv", 4)):
        put(bucket, key, f"{number},a,1,\n".encode())
    put(bucket, "a/", b"")
    put(bucket, "a/4.csv.gz", gzip.compress(b"5,a,1,\n"))
    assert ids(read_all(s3_input(bucket, key="b.csv"))) == [4]
    assert ids(read_all(s3_input(bucket, keys=["b.csv", "a/1.csv", "b.csv"]))) == [1, 4]
    assert ids(read_all(s3_input(bucket, prefix="a/"))) == [1, 2, 5, 3]
    assert ids(read_all(s3_input(bucket, prefix=""))) == [1, 2, 5, 3, 4]


def test_thousands_of_objects_from_any_position(bucket: Bucket) -> None:
    put_all(bucket, {f"in/{number:05}": f"{number},a,1,\n".encode() for number in range(1100)})
    source = s3_input(bucket, prefix="in/")
    chunks = [source.read(300, 5), source.read(300, 5)]
    first = [chunk for chunk in chunks if chunk is not None]
    assert len(json.dumps(first[-1].position)) < 200
    rest = read_all(s3_input(bucket, prefix="in/", position=first[-1].position))
    assert ids(first + rest) == list(range(1100))
    source.close()


def test_a_large_object_is_read_in_parts(bucket: Bucket) -> None:
    numbers = list(range(400_000))
    sink = io.BytesIO()
    pq.write_table(pa.table({"student_id": numbers, "class": [f"{n * 7919:x}" for n in numbers]}), sink, row_group_size=50_000)
    put(bucket, "large.parquet", sink.getvalue())
    put(bucket, "large.csv", "".join(f"{n},{n * 7919:x},1,\n" for n in numbers).encode())
    for format_name in ("parquet", "csv"):
        source = s3_input(bucket, format_name, key=f"large.{format_name}")
        chunk = source.read(60_000, 5)
        assert chunk is not None
        found = ids([chunk])
        assert found + ids(read_all(s3_input(bucket, format_name, key=f"large.{format_name}", position=chunk.position))) == numbers
        assert found + ids(read_all(source)) == numbers


@pytest.mark.core
def test_what_is_missing_is_named(bucket: Bucket) -> None:
    with pytest.raises(ConnectorFailure, match=rf"there is no object s3://{bucket.name}/none\.csv"):
        s3_input(bucket, key="none.csv")
    with pytest.raises(ConnectorFailure, match="has no object whose key begins with 'none/'"):
        s3_input(bucket, prefix="none/")
    with pytest.raises(ConnectorFailure, match="there is no bucket 'no-such-bucket'"):
        s3_input(bucket, bucket_name="no-such-bucket", prefix="")


@pytest.mark.core
def test_who_may_not_read_is_told(bucket: Bucket) -> None:
    put(bucket, "a.csv", b"1,a,1,\n")
    for options in ({"aws_secret_access_key": "wrong-secret"}, {"aws_access_key_id": "AKIANOBODY"}):
        with pytest.raises(ConnectorFailure, match=r"may not be read.*Check the keys") as refused:
            s3_input(bucket, key="a.csv", **options)
        assert not isinstance(refused.value, TransientConnectorFailure)
        assert "wrong-secret" not in str(refused.value)
        assert bucket.secret_key not in str(refused.value)


def test_a_service_that_is_away_may_come_back(bucket: Bucket) -> None:
    with pytest.raises(TransientConnectorFailure, match="cannot be reached"):
        s3_input(bucket, prefix="", endpoint_url="http://127.0.0.1:9")


@pytest.mark.core
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "exactly one of 'key', 'keys' and 'prefix'"),
        ({"key": "a", "prefix": ""}, "there is key and prefix"),
        ({"key": "a", "aws_access_key_id": "x"}, "belong together"),
        ({"key": "a", "aws_access_key_id": "x", "aws_secret_access_key": "y", "no_sign_request": True}, "asks without a key"),
        ({"keys": []}, "at least 1 item"),
    ],
)
def test_options_that_contradict_each_other(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        S3InputOptions.model_validate({"bucket_name": "b", **options})
