"""The transport that reads sources of stream programs: its rows, counts, positions and errors."""

from __future__ import annotations

import json
import os
import pickle
import signal
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from airflow_pipelines.connectors.base import Committing, FatalConnectorFailure, InputChunk, Lagging
from airflow_pipelines.connectors.opening import open_stream_source
from airflow_pipelines.connectors.transports.stream_source import StreamSourceInput, StreamSourceOptions
from airflow_pipelines.connectors.validation import validate
from airflow_pipelines.datastream import WatermarkStrategy
from airflow_pipelines.datastream.connectors import NumberSequenceSource
from airflow_pipelines.program.connectors import Connector, ConnectorDirection
from airflow_pipelines.rows.changes import OP
from airflow_pipelines.rows.formats.option_errors import InvalidOptionError
from airflow_pipelines.rows.schema import Column, RelationSchema
from airflow_pipelines.rows.types import ColumnType
from airflow_pipelines.streams.errors import StreamProgramError
from airflow_pipelines.streams.reading.client import ReadingProcess
from airflow_pipelines.streams.worker.messages import FeedKind
from tests.streams.reading.conftest import Start, lines, start
from tests.streams.reading.programs import LIMIT, Counting, Failing, Touching, Waiting

__all__ = ["lines", "start"]

NO_TIME = WatermarkStrategy.no_watermarks()
_TYPES = {"split": "INTEGER", "kind": "TINYINT", "records": "BIGINT", "payload": "VARBINARY"}
SCHEMA = RelationSchema("source x", tuple(Column(name, ColumnType(kind, nullable=False)) for name, kind in _TYPES.items()))


def _source(process: ReadingProcess, uid: str = "x") -> StreamSourceInput:
    return StreamSourceInput(StreamSourceOptions(uid=uid), SCHEMA, lambda: process)


def _chunks(source: StreamSourceInput, most: int = 100_000) -> list[InputChunk]:
    found: list[InputChunk] = []
    end = time.monotonic() + LIMIT
    while not found or not found[-1].end_of_input:
        assert time.monotonic() < end
        chunk = source.read(most, 0.5)
        if chunk is not None:
            found.append(chunk)
    return found


def _values(chunks: list[InputChunk]) -> list[Any]:
    rows = [row for chunk in chunks if chunk.changes is not None for row in chunk.changes.rows.to_pylist()]
    return [value for row in rows if row["kind"] == FeedKind.ELEMENTS for value in pickle.loads(row["payload"])[0]]


@pytest.mark.core
def test_rows_are_messages_and_elements_are_counted(start: Start) -> None:
    source = _source(start(lambda env: env.from_collection(list(range(9000))).uid("x").print()))
    assert isinstance(source, Committing)
    source.open(None)
    chunks = _chunks(source)
    assert _values(chunks) == list(range(9000))
    assert sum(chunk.records for chunk in chunks) == 9000
    payloads = 0
    for chunk in chunks:
        if chunk.changes is None:
            continue
        assert chunk.changes.table == "source x"
        assert chunk.changes.rows.schema.equals(SCHEMA.arrow.append(pa.field(OP, pa.int8(), nullable=False)))
        assert set(chunk.changes.rows[OP].to_pylist()) == {1}
        payloads += sum(map(len, chunk.changes.rows["payload"].to_pylist()))
    assert sum(chunk.size_bytes for chunk in chunks) == payloads > 9000
    assert chunks[0].changes is not None
    first = chunks[0].changes.rows.to_pylist()[0]
    assert (first["split"], first["kind"], first["records"], first["payload"]) == (-1, FeedKind.SPLITS, 1, b"")
    assert chunks[-1].changes is not None
    last = chunks[-1].changes.rows.to_pylist()[-1]
    assert (last["split"], last["kind"], last["records"]) == (0, FeedKind.ENDED, 0)


def test_a_position_is_json_from_which_another_process_goes_on(start: Start) -> None:
    def define(env: Any) -> None:
        env.add_source(Counting(3000)).uid("x").print()

    source = _source(start(define))
    source.open(None)
    first: list[InputChunk] = []
    while sum(chunk.records for chunk in first) < 1000:
        chunk = source.read(100, LIMIT)
        assert chunk is not None
        assert chunk.records <= 100
        first.append(chunk)
    position = json.loads(json.dumps(first[-1].position))
    again = _source(start(define))
    again.open(position)
    rest = _chunks(again)
    assert _values(first) + _values(rest) == list(range(1, 3001))
    ended = _source(start(define))
    ended.open(rest[-1].position)
    last = _chunks(ended)
    assert [(chunk.changes, chunk.records, chunk.size_bytes) for chunk in last] == [(None, 0, 0)]


@pytest.mark.core
def test_nothing_within_the_time_is_none_and_comes_later(start: Start) -> None:
    source = _source(start(lambda env: env.add_source(Counting(2, pause=0.5)).uid("x").print()))
    source.open(None)
    found: list[InputChunk] = []
    end = time.monotonic() + LIMIT
    nothing = 0
    while len(_values(found)) < 2:
        assert time.monotonic() < end
        chunk = source.read(10, 0.05)
        nothing += chunk is None
        found += [] if chunk is None else [chunk]
    assert nothing
    assert _values(found) == [1, 2]


@pytest.mark.core
def test_a_commit_reaches_the_source(start: Start, tmp_path: Path) -> None:
    source = _source(start(lambda env: env.add_source(Touching(tmp_path)).uid("x").print()))
    source.open(None)
    chunk = None
    while chunk is None or not chunk.records:
        chunk = source.read(1, LIMIT)
    source.commit(chunk.position)
    end = time.monotonic() + LIMIT
    while not (tmp_path / "committed").exists():
        assert time.monotonic() < end
        time.sleep(0.01)


@pytest.mark.core
def test_the_lag_is_what_the_source_has_left(start: Start) -> None:
    def define(env: Any) -> None:
        env.from_source(NumberSequenceSource(1, 50_000), NO_TIME, "numbers").uid("x").print()
        env.add_source(Counting(5)).uid("silent").print()

    process = start(define)
    source, silent = _source(process), _source(process, "silent")
    assert isinstance(source, Lagging)
    assert source.lag() is None, "nothing is known before it is open"
    source.open(None)
    silent.open(None)
    read = 0
    while read < 100:
        chunk = source.read(100, LIMIT)
        assert chunk is not None
        read += chunk.records
    end = time.monotonic() + LIMIT
    lags = []
    while not lags or lags[-1] is None or lags[-1].records == 50_000:
        assert time.monotonic() < end
        time.sleep(0.02)
        lags.append(source.lag())
    # Elements that wait to be given count as read.
    assert lags[-1].records is not None
    assert 50_000 - read >= lags[-1].records > 0
    assert sum(chunk.records for chunk in _chunks(silent)) == 5
    assert silent.lag() is None, "it does not say"


@pytest.mark.core
def test_an_error_of_the_source_is_fatal_and_shows_its_place(start: Start) -> None:
    source = _source(start(lambda env: env.add_source(Failing(2, "broken pipe organ")).uid("x").print()))
    source.open(None)
    with pytest.raises(FatalConnectorFailure, match=r"(?s)ValueError: broken pipe organ.*programs\.py.*Source: Custom Source"):
        _chunks(source)


@pytest.mark.core
def test_the_end_of_the_process_is_fatal(start: Start) -> None:
    process = start(lambda env: env.add_source(Waiting([1])).uid("x").print())
    source = _source(process)
    source.open(None)
    os.kill(process.pid, signal.SIGKILL)
    with pytest.raises(FatalConnectorFailure, match="SIGKILL"):
        _chunks(source)


def test_a_process_that_cannot_be_started_is_fatal() -> None:
    def refuse() -> ReadingProcess:
        raise StreamProgramError("no such interpreter")

    with pytest.raises(FatalConnectorFailure, match="no such interpreter"):
        StreamSourceInput(StreamSourceOptions(uid="x"), SCHEMA, refuse).open(None)


def test_one_that_was_never_opened_can_be_closed_and_has_nothing() -> None:
    source = StreamSourceInput(StreamSourceOptions(uid="x"), SCHEMA, lambda: pytest.fail("started"))
    source.close()
    assert source.read(1, 0.0) is None
    source.commit({"position": ""})


@pytest.mark.parametrize("transport", ["stream_source", "stream_end"])
def test_programs_cannot_declare_it(transport: str) -> None:
    connector = Connector("source x", "reader", ConnectorDirection.INPUT, transport, {"uid": "x"})
    with pytest.raises(InvalidOptionError, match=f"'{transport}' belongs to the hidden tables of stream programs"):
        validate(connector, SCHEMA)
    assert isinstance(open_stream_source(connector, SCHEMA, lambda: pytest.fail("started")), StreamSourceInput)
