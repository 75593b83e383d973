"""Tables of a REST catalog: what is written and read through it, a server that refuses or is away."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from airflow_pipelines.connectors.base import ConnectorFailure, TransientConnectorFailure
from airflow_pipelines.connectors.transports.iceberg.input import IcebergInput
from airflow_pipelines.connectors.transports.iceberg.input_options import IcebergInputOptions
from airflow_pipelines.connectors.transports.iceberg.output import IcebergOutput
from airflow_pipelines.connectors.transports.iceberg.output_options import IcebergOutputOptions
from tests.connectors.contexts import input_context, output_context
from tests.connectors.transports.iceberg.rest_server import TOKEN, rest_catalog
from tests.connectors.transports.iceberg.tables import PEOPLE, changes, read_all, rows, seen

pytestmark = [pytest.mark.processes, pytest.mark.core]
KEY = ("id",)


@pytest.fixture
def rest(tmp_path: Path) -> Iterator[dict[str, Any]]:
    with rest_catalog(tmp_path) as uri:
        yield {"catalog_type": "rest", "rest.uri": uri, "rest.token": TOKEN, "table_name": "db.people"}


def output(rest: dict[str, Any], *, resumed: bool = False) -> IcebergOutput:
    sink = IcebergOutput(IcebergOutputOptions.model_validate({**rest, "write": "merged"}), output_context(PEOPLE, KEY))
    sink.open(resumed)
    return sink


def source(rest: dict[str, Any], mode: str = "snapshot") -> IcebergInput:
    def no_parser() -> Any:
        raise AssertionError("this input has no format")

    made = IcebergInput(IcebergInputOptions.model_validate({**rest, "mode": mode}), input_context(PEOPLE, None, no_parser))
    made.open(None)
    return made


@pytest.mark.rest
def test_a_table_is_written_and_read(rest: dict[str, Any], tmp_path: Path) -> None:
    sink = output(rest)
    sink.write(1, changes((1, "a", 1), (2, "b", 1), key=KEY))
    following = source(rest, "snapshot_and_follow")
    assert sorted(seen(read_all(following))) == [(1, "a", 1), (2, "b", 1)]
    again = output(rest, resumed=True)
    assert again.committed_step() == 1
    again.write(2, changes((1, "a", -1), (1, "A", 1), key=KEY))
    assert rows(tmp_path) == [(1, "A"), (2, "b")]
    following._next_look = 0
    total = {(1, "a"): 0, (1, "A"): 0, (2, "b"): 0}
    for id, name, op in seen(read_all(following)):
        total[(id, name)] += op
    assert total == {(1, "a"): -1, (1, "A"): 1, (2, "b"): 0}
    again.rewind(1)
    assert rows(tmp_path) == [(1, "a"), (2, "b")]


def test_a_server_that_refuses_or_is_away(rest: dict[str, Any]) -> None:
    with pytest.raises(ConnectorFailure, match=r"refuses: .*Check the keys") as refused:
        source({**rest, "rest.token": "wrong-token"})
    assert "wrong-token" not in str(refused.value)
    assert not isinstance(refused.value, TransientConnectorFailure)
    with pytest.raises(ConnectorFailure, match="there is no such table"):
        source(rest)
    with pytest.raises(TransientConnectorFailure, match="cannot open"):
        source({**rest, "rest.uri": "http://127.0.0.1:9"})
