"""Writing a view to Redis: keys, values, deletes, each step once, and what goes wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import redis

from airflow_pipelines.common.references import NO_REFERENCES
from airflow_pipelines.connectors.base import CommitsSteps, ConnectorFailure, OutputTransport, TransientConnectorFailure
from airflow_pipelines.connectors.changes import ChangesInMemory
from airflow_pipelines.connectors.definition import PipelineReference
from airflow_pipelines.connectors.left_out import LeftOutRows
from airflow_pipelines.connectors.opening import open_output
from airflow_pipelines.connectors.validation import validate
from airflow_pipelines.engine.storage.fence import Fence, OvertakenError
from airflow_pipelines.program.connectors import Connector, ConnectorDirection
from airflow_pipelines.rows.formats.option_errors import InvalidOptionError
from airflow_pipelines.rows.zsets import WEIGHT
from tests.connectors.odd_texts import texts
from tests.connectors.relations import col, relation
from tests.fixtures.redis import RedisServer

pytestmark = pytest.mark.core

TOTALS = relation(col("shop", "VARCHAR"), col("day", "DATE"), col("total", "DECIMAL", precision=10, scale=2), name="totals")
KEY = ("shop", "day")
DAY = "2024-01-02"


def opened(url: str, *, resumed: bool = False, fence: Fence | None = None, **options: Any) -> OutputTransport:
    config = {"connection_string": url, **options}
    connector = Connector("totals", "out", ConnectorDirection.OUTPUT, "redis_output", config, options={"index": "by_key"})
    output = open_output(connector, TOTALS, NO_REFERENCES, PipelineReference("0190-1", "p"), key=KEY, fence=fence)
    output.open(resumed)
    return output


def step(output: OutputTransport, number: int, *rows: tuple[str | None, str, str | None, int]) -> tuple[int, int]:
    shops, days, totals, weights = (list(values) for values in zip(*rows, strict=True))
    columns = [
        pa.array(shops, pa.string()),
        pa.array(days, pa.string()).cast(pa.date32()),
        pa.array(totals, pa.string()).cast(pa.decimal128(10, 2)),
        pa.array(weights, pa.int64()),
    ]
    return output.write(number, ChangesInMemory(pa.table(columns, names=[*TOTALS.column_names, WEIGHT]), KEY))


@pytest.fixture
def client(redis_server: RedisServer, redis_url: str) -> redis.Redis:
    return redis_server.client()


def values(client: redis.Redis) -> dict[str, Any]:
    keys = sorted(key for key in client.scan_iter() if not key.startswith("airflow_pipelines:"))
    return {key: json.loads(str(client.get(key))) for key in keys}


def test_a_row_without_a_text_is_left_out(client: redis.Redis, redis_url: str) -> None:
    view = relation(col("id", "BIGINT"), col("name", "VARCHAR"), name="totals")
    config = {"connection_string": redis_url}
    connector = Connector("totals", "out", ConnectorDirection.OUTPUT, "redis_output", config, options={"index": "by_id"})
    left_out = LeftOutRows(("id",))
    output = open_output(connector, view, NO_REFERENCES, PipelineReference("0190-1", "p"), key=("id",), left_out=left_out)
    output.open(False)

    def write(number: int, *rows: tuple[int, str | bytes, int]) -> int:
        ids, names, weights = zip(*rows, strict=True)
        columns = [pa.array(ids, pa.int64()), texts(names), pa.array(weights, pa.int64())]
        return output.write(number, ChangesInMemory(pa.table(columns, names=["id", "name", WEIGHT]), ("id",)))[0]

    assert write(1, (1, "a", 1), (2, b"\xff", 1), (3, "c", 1)) == 2
    assert [error.message.partition(":")[0] for error in left_out.take()[0]] == ["row (id = 2)"]
    assert values(client) == {"1": {"id": 1, "name": "a"}, "3": {"id": 3, "name": "c"}}
    # Of an update the old row goes; one that was left out goes without a word.
    write(2, (1, "a", -1), (1, b"\xff", 1), (2, b"\xff", -1), (3, "c", -1), (3, "d", 1))
    assert left_out.take()[1] == 1
    assert values(client) == {"3": {"id": 3, "name": "d"}}
    write(3, (1, b"\xff", -1), (1, "e", 1))
    assert left_out.take()[1] == 0
    assert values(client) == {"1": {"id": 1, "name": "e"}, "3": {"id": 3, "name": "d"}}
    output.close()


def test_keys_follow_the_view(client: redis.Redis, redis_url: str) -> None:
    output = opened(redis_url)
    count, size = step(output, 1, ("a", DAY, "1.50", 1), ("b", DAY, None, 1), (None, DAY, "7.00", 1))
    assert count == 3
    assert size > 0
    assert values(client) == {
        f"a:{DAY}": {"shop": "a", "day": DAY, "total": 1.5},
        f"b:{DAY}": {"shop": "b", "day": DAY, "total": None},
        f"null:{DAY}": {"shop": None, "day": DAY, "total": 7.0},
    }
    assert step(output, 2, ("a", DAY, "1.50", -1), ("a", DAY, "2.00", 1), ("b", DAY, None, -1))[0] == 2
    assert values(client).keys() == {f"a:{DAY}", f"null:{DAY}"}
    assert values(client)[f"a:{DAY}"]["total"] == 2
    output.close()


def test_hashes_prefixes_and_separators(client: redis.Redis, redis_url: str) -> None:
    output = opened(redis_url, value="hash", key_prefix="totals/", key_separator="/")
    step(output, 1, ("a", DAY, "1.50", 1))
    assert client.hgetall(f"totals/a/{DAY}") == {"shop": "a", "day": DAY, "total": "1.50"}
    step(output, 2, ("a", DAY, "1.50", -1), ("a", DAY, None, 1))
    assert client.hgetall(f"totals/a/{DAY}") == {"shop": "a", "day": DAY}
    step(output, 3, ("a", DAY, None, -1))
    assert not client.exists(f"totals/a/{DAY}")
    output.close()


def test_a_step_is_kept_with_its_number(client: redis.Redis, redis_url: str) -> None:
    output = opened(redis_url)
    assert isinstance(output, CommitsSteps)
    assert output.committed_step() is None
    step(output, 7, *((f"s{number}", DAY, "1.00", 1) for number in range(25_000)))
    assert output.committed_step() == 7
    assert client.dbsize() == 25_001
    output.close()
    resumed = opened(redis_url, resumed=True)
    assert isinstance(resumed, CommitsSteps)
    assert resumed.committed_step() == 7
    resumed.close()
    fresh = opened(redis_url)
    assert isinstance(fresh, CommitsSteps)
    assert fresh.committed_step() is None
    fresh.close()


def test_a_later_run_ends_an_earlier_one(redis_url: str, client: redis.Redis, tmp_path: Path) -> None:
    first = opened(redis_url, fence=Fence.take(tmp_path, lambda: 0))
    step(first, 1, ("a", DAY, "1.00", 1))
    elsewhere = tmp_path / "copy"
    elsewhere.mkdir()
    second = opened(redis_url, fence=Fence.take(elsewhere, lambda: 5), resumed=True)
    step(second, 2, ("b", DAY, "1.00", 1))
    with pytest.raises(ConnectorFailure, match="a later run of the pipeline writes these keys"):
        step(first, 2, ("c", DAY, "1.00", 1))
    Fence.take(tmp_path, lambda: 0)
    with pytest.raises(OvertakenError):
        step(first, 3, ("c", DAY, "1.00", 1))
    assert values(client).keys() == {f"a:{DAY}", f"b:{DAY}"}
    first.close()
    second.close()


def test_a_server_that_stops_and_starts(redis_server: RedisServer, redis_url: str, client: redis.Redis) -> None:
    output = opened(redis_url)
    step(output, 1, ("a", DAY, "1.00", 1))
    redis_server.stop()
    try:
        with pytest.raises(TransientConnectorFailure, match=r"cannot write step 2 \(127.0.0.1:\d+\).*whether the server runs"):
            step(output, 2, ("a", DAY, "1.00", -1))
        with pytest.raises(TransientConnectorFailure, match="cannot connect"):
            opened(redis_url, resumed=True)
    finally:
        redis_server.start()
    output.close()
    again = opened(redis_url, resumed=True)
    assert isinstance(again, CommitsSteps)
    assert again.committed_step() == 1
    step(again, 2, ("a", DAY, "1.00", -1))
    assert values(client) == {}
    again.close()


def test_what_goes_wrong_is_said_without_the_password(redis_server: RedisServer, redis_url: str, client: redis.Redis) -> None:
    client.acl_setuser("guarded", enabled=True, passwords=["+right"], keys=["other:*"], commands=["+@all"])
    port = redis_server.port
    with pytest.raises(ConnectorFailure, match="Check user and password in 'connection_string'") as failure:
        opened(f"redis://guarded:s3cret@127.0.0.1:{port}/0")
    assert "s3cret" not in str(failure.value)
    assert not isinstance(failure.value, TransientConnectorFailure)
    with pytest.raises(ConnectorFailure, match="Let the user do that") as failure:
        step(opened(f"redis://guarded:right@127.0.0.1:{port}/0"), 1, ("a", DAY, "1.00", 1))
    assert "right" not in str(failure.value).replace("rights", "")
    client.config_set("maxmemory", "1mb")
    try:
        with pytest.raises(TransientConnectorFailure, match="The server is full: raise its maxmemory"):
            step(opened(redis_url), 1, *((f"s{number}" * 20, DAY, "1.00", 1) for number in range(9_000)))
    finally:
        client.config_set("maxmemory", "0")


def test_declarations() -> None:
    config = {"connection_string": "redis://127.0.0.1:1/0"}
    plain = Connector("totals", "out", ConnectorDirection.OUTPUT, "redis_output", config)
    with pytest.raises(InvalidOptionError, match="index"):
        validate(plain, TOTALS)
    wrong = Connector("totals", "out", ConnectorDirection.OUTPUT, "redis_output", {"connection_string": "127.0.0.1:6379"})
    with pytest.raises(InvalidOptionError, match="a URL begins with redis://"):
        validate(wrong, TOTALS)
