"""Tables whose files are in an object store, and whose names are in a database of PostgreSQL or in Glue."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from airflow_pipelines.connectors.base import ConnectorFailure, TransientConnectorFailure
from airflow_pipelines.connectors.transports.iceberg.input import IcebergInput
from airflow_pipelines.connectors.transports.iceberg.input_options import IcebergInputOptions
from airflow_pipelines.connectors.transports.iceberg.output import IcebergOutput
from airflow_pipelines.connectors.transports.iceberg.output_options import IcebergOutputOptions
from tests.connectors.contexts import input_context, output_context
from tests.connectors.transports.iceberg.tables import PEOPLE, changes, read_all, seen
from tests.fixtures.postgresql import Database
from tests.fixtures.s3 import Bucket

pytestmark = pytest.mark.processes
KEY = ("id",)


@pytest.fixture(params=["postgresql", "glue"])
def lake(request: pytest.FixtureRequest, s3: Callable[[], Bucket]) -> dict[str, Any]:
    """The options of a connector."""
    bucket = s3()
    files = {
        "s3.endpoint": bucket.endpoint,
        "s3.access-key-id": bucket.access_key,
        "s3.secret-access-key": bucket.secret_key,
        "s3.region": "us-east-1",
    }
    # Only one of the two needs a database.
    if request.param == "postgresql":
        url = request.getfixturevalue("database").url.replace("postgresql://", "postgresql+psycopg://")
        names = {"catalog_type": "sql", "sql.uri": url, "sql.warehouse": f"s3://{bucket.name}/lake"}
    else:
        names = {
            "catalog_type": "glue",
            "glue.endpoint": bucket.endpoint,
            "glue.region": "us-east-1",
            "glue.access-key-id": bucket.access_key,
            "glue.secret-access-key": bucket.secret_key,
            "glue.warehouse": f"s3://{bucket.name}/lake",
        }
    # Glue has one catalog for everybody.
    return {**names, **files, "table_name": f"db_{bucket.name.replace('-', '_')}.people"}


def output(lake: dict[str, Any], *, resumed: bool = False) -> IcebergOutput:
    sink = IcebergOutput(IcebergOutputOptions.model_validate({**lake, "write": "merged"}), output_context(PEOPLE, KEY))
    sink.open(resumed)
    return sink


def source(lake: dict[str, Any], mode: str = "snapshot") -> IcebergInput:
    def no_parser() -> Any:
        raise AssertionError("this input has no format")

    made = IcebergInput(IcebergInputOptions.model_validate({**lake, "mode": mode}), input_context(PEOPLE, None, no_parser))
    made.open(None)
    return made


def test_a_table_is_written_and_read(lake: dict[str, Any]) -> None:
    sink = output(lake)
    sink.write(1, changes((1, "a", 1), (2, "b", 1), key=KEY))
    following = source(lake, "snapshot_and_follow")
    assert sorted(seen(read_all(following))) == [(1, "a", 1), (2, "b", 1)]
    again = output(lake, resumed=True)
    assert again.committed_step() == 1
    again.write(2, changes((1, "a", -1), (1, "A", 1), key=KEY))
    assert sorted(seen(read_all(source(lake)))) == [(1, "A", 1), (2, "b", 1)]
    following._next_look = 0
    total = dict.fromkeys([(1, "a"), (1, "A"), (2, "b")], 0)
    for number, name, operation in seen(read_all(following)):
        total[number, name] += operation
    assert total == {(1, "a"): -1, (1, "A"): 1, (2, "b"): 0}
    again.rewind(1)
    assert sorted(seen(read_all(source(lake)))) == [(1, "a", 1), (2, "b", 1)]


@pytest.mark.core
def test_who_may_not_is_told_without_the_key(lake: dict[str, Any]) -> None:
    wrong = {**lake, "s3.secret-access-key": "wr0ng"}
    if lake["catalog_type"] == "glue":
        wrong["glue.secret-access-key"] = "wr0ng"
    with pytest.raises(ConnectorFailure, match=r"the catalog or the store of the files refuses: .*Check the keys") as failure:
        output(wrong)
    assert not isinstance(failure.value, TransientConnectorFailure)
    assert "wr0ng" not in str(failure.value)


@pytest.mark.core
def test_who_has_another_password_or_no_server_is_told(s3: Callable[[], Bucket], database: Database, password_user: str) -> None:
    def failure(url: str) -> ConnectorFailure:
        with pytest.raises(ConnectorFailure) as found:
            output({"catalog_type": "sql", "sql.uri": url, "sql.warehouse": "s3://x/y", "table_name": "db.people"})
        assert "wr0ng" not in str(found.value)
        return found.value

    refused = failure(f"postgresql+psycopg://{password_user}:wr0ng@127.0.0.1:{database.server.port}/{database.name}")
    assert "password authentication failed" in str(refused)
    assert not isinstance(refused, TransientConnectorFailure)
    assert isinstance(failure("postgresql+psycopg://pipelines:wr0ng@127.0.0.1:9/x"), TransientConnectorFailure)
