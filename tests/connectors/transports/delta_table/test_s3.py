"""Tables in an object store that checks who asks."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from airflow_pipelines.connectors.base import ConnectorFailure, TransientConnectorFailure
from tests.connectors.transports.delta_table.tables import changes, merged, output, rows
from tests.connectors.transports.delta_table.test_input import contents, read_all, seen, source
from tests.fixtures.s3 import Bucket

pytestmark = pytest.mark.processes

KEY = ("id",)


def options(bucket: Bucket, **others: Any) -> dict[str, Any]:
    """The options of a connector, beside each other."""
    given = {
        "aws_access_key_id": bucket.access_key,
        "AWS_SECRET_ACCESS_KEY": bucket.secret_key,
        "aws_endpoint": bucket.endpoint,
        "aws_region": "us-east-1",
        "allow_http": True,
        "max_retries": 1,
        "retry_timeout": "5s",
    }
    return {**given, **others}


def storage(bucket: Bucket) -> dict[str, str]:
    """The same as the library has them."""
    return {name.lower(): str(value).lower() if value is True else str(value) for name, value in options(bucket).items()}


def test_write_follow_and_take_back(s3: Callable[[], Bucket]) -> None:
    bucket = s3()
    uri = f"s3://{bucket.name}/lake/t"
    sink = merged(uri, key=KEY, **options(bucket))
    sink.write(1, changes((1, "a", 1), (2, "b", 1), key=KEY))
    follower = source(uri, "snapshot_and_follow", **options(bucket))
    chunks = read_all(follower)
    sink.write(2, changes((1, "a", -1), (1, "A", 1), key=KEY))
    sink.write(3, changes((2, "b", -1), (3, "c", 1), key=KEY))
    follower._next_look = 0
    chunks += read_all(follower)
    assert set(contents(chunks)) == {(1, "A"), (3, "c")} == set(rows(uri, **storage(bucket)))
    again = merged(uri, key=KEY, resumed=True, **options(bucket))
    assert again.committed_step() == 3
    again.rewind(2)
    assert rows(uri, **storage(bucket)) == [(1, "A"), (2, "b")]


@pytest.mark.core
def test_partitions_with_odd_names(s3: Callable[[], Bucket]) -> None:
    bucket = s3()
    uri = f"s3://{bucket.name}/t"
    table = pa.table({"id": [1, 2, 3], "name": ["a b", "c/d", None]})
    write_deltalake(uri, table, partition_by=["name"], storage_options=storage(bucket))
    assert seen(read_all(source(uri, filter="name = 'c/d'", **options(bucket)))) == [(2, "c/d", 1)]
    assert set(contents(read_all(source(uri, **options(bucket))))) == {(1, "a b"), (2, "c/d"), (3, None)}


def test_writers_on_an_object_store_do_not_overwrite_each_other(s3: Callable[[], Bucket]) -> None:
    bucket = s3()
    uri = f"s3://{bucket.name}/log"
    sinks = [output(uri, writer=f"p/{number}", **options(bucket)) for number in range(3)]

    def write(number: int) -> None:
        for step in range(1, 6):
            sinks[number].write(step, changes((100 * number + step, "x", 1)))

    threads = [threading.Thread(target=write, args=[number]) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    found = [row[0] for row in rows(uri, **storage(bucket))]
    assert sorted(found) == sorted(100 * number + step for number in range(3) for step in range(1, 6))


@pytest.mark.core
def test_a_wrong_key_is_not_tried_again(s3: Callable[[], Bucket]) -> None:
    bucket = s3()
    wrong = options(bucket, AWS_SECRET_ACCESS_KEY="not-the-key")
    for opens in (
        lambda: source(f"s3://{bucket.name}/t", **wrong),
        lambda: output(f"s3://{bucket.name}/t", **wrong),
    ):
        with pytest.raises(ConnectorFailure, match="the store refuses") as caught:
            opens()
        assert not isinstance(caught.value, TransientConnectorFailure)
        assert "not-the-key" not in str(caught.value)


@pytest.mark.core
def test_a_bucket_that_is_not_there(s3: Callable[[], Bucket]) -> None:
    bucket = s3()
    with pytest.raises(ConnectorFailure, match="there is no Delta table"):
        source(f"s3://{bucket.name}/none", **options(bucket))
    with pytest.raises(ConnectorFailure) as caught:
        output("s3://no-such-bucket/t", **options(bucket))
    assert "NoSuchBucket" in str(caught.value)


@pytest.mark.core
def test_files_that_were_deleted(s3: Callable[[], Bucket]) -> None:
    bucket = s3()
    uri = f"s3://{bucket.name}/t"
    write_deltalake(uri, pa.table({"id": [1], "name": ["a"]}), storage_options=storage(bucket))
    import boto3

    keys = {"aws_access_key_id": bucket.access_key, "aws_secret_access_key": bucket.secret_key}
    client = boto3.client("s3", endpoint_url=bucket.endpoint, region_name="us-east-1", **keys)
    made = source(uri, **options(bucket))
    for found in client.list_objects_v2(Bucket=bucket.name, Prefix="t/part")["Contents"]:
        client.delete_object(Bucket=bucket.name, Key=found["Key"])
    with pytest.raises(ConnectorFailure, match=r"version 0 of the table .* can no longer be read.*Load the table anew"):
        read_all(made)
