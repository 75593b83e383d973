"""The server of objects for benchmarks, asked by the client of the connector."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from airflow_pipelines.connectors.base import ConnectorFailure
from airflow_pipelines.connectors.transports.files.listing import Found
from airflow_pipelines.connectors.transports.s3_client import S3Client
from tools.object_server import object_server

CONTENT = bytes(range(256)) * 1_000


@pytest.fixture
def client(tmp_path: Path) -> Iterator[S3Client]:
    folder = tmp_path / "bucket" / "some"
    folder.mkdir(parents=True)
    (folder / "large").write_bytes(CONTENT)
    for number in range(1_200):
        (folder / f"{number:04}").write_bytes(b"x")
    with object_server(tmp_path) as endpoint:
        yield S3Client(endpoint, "us-east-1", ("key", "secret"), signs=True)


@pytest.mark.core
@pytest.mark.processes
def test_it_gives_what_the_files_have(client: S3Client) -> None:
    found = Found("some/large", "bucket/some/large", len(CONTENT))
    fetch = client.fetch_of(found)
    assert fetch(0, len(CONTENT)) == CONTENT
    assert fetch(1_000, 1_001) == CONTENT[1_000:1_001]
    assert client.ask("head_object", Bucket="bucket", Key="some/large")["ContentLength"] == len(CONTENT)
    with pytest.raises(ConnectorFailure, match="became shorter"):
        fetch(len(CONTENT) - 10, len(CONTENT) + 10)
    with pytest.raises(FileNotFoundError):
        client.fetch_of(Found("some/none", "bucket/some/none", 1))(0, 1)
    first = client.ask("list_objects_v2", Bucket="bucket", Prefix="some/")
    assert (len(first["Contents"]), first["IsTruncated"]) == (1_000, True)
    rest = client.ask("list_objects_v2", Bucket="bucket", Prefix="some/", ContinuationToken=first["NextContinuationToken"])
    names = [entry["Key"] for entry in (*first["Contents"], *rest["Contents"])]
    assert names == sorted({f"some/{number:04}" for number in range(1_200)} | {"some/large"})
