"""What every input has to do: each row once, from wherever it is opened, and to say what is wrong."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from airflow_pipelines.common.references import NO_REFERENCES, References
from airflow_pipelines.connectors.base import (
    ChunkInTransaction,
    ConnectorFailure,
    InputChunk,
    InputTransport,
    Lagging,
    TransientConnectorFailure,
)
from airflow_pipelines.connectors.common_options import ConnectorOptions
from airflow_pipelines.connectors.definition import InputDefinition, PipelineReference
from airflow_pipelines.connectors.opening import open_input
from airflow_pipelines.host.inputs.connector_input import ConnectorInput
from airflow_pipelines.host.inputs.inputs import InputEndpoint
from airflow_pipelines.host.state.pipeline_log import PipelineLog
from airflow_pipelines.program.connectors import Connector, ConnectorDirection
from airflow_pipelines.program.relations import Table
from airflow_pipelines.rows.changes import OP, Op
from airflow_pipelines.rows.schema import RelationSchema
from tests.connectors.conformance.declarations import check_definition, check_references, check_refusals, definition_of
from tests.connectors.relations import col, relation
from tests.connectors.waits import set_waits

PEOPLE = relation(col("id", "BIGINT", null=False), col("name", "VARCHAR"), name="t")
PATIENCE_S = 30.0
_PIPELINE = PipelineReference("0194f2a0-0000-7000-8000-000000000000", "conformance")


class InputCase:
    """A source with rows. A case of a connector gives the fields, and what it can do of the methods.

    :param transport: the name of the transport
    :param config: its options
    :param format: the name of the format; None for a transport that needs none
    :param format_config: its options
    :param schema: of the table
    :param rows: all rows in the order in which they come
    :param ends: whether the input has an end
    :param chunk: for how many records it is asked at a time; few, so that there are many places to be restored to
    """

    transport = ""
    config: dict[str, Any] = {}
    format: str | None = None
    format_config: dict[str, Any] = {}
    schema: RelationSchema = PEOPLE
    rows: list[dict[str, Any]] = []
    ends = True
    chunk = 3
    can_be_away = False
    """Whether :meth:`take_away` takes the source away."""
    keeps_places_in_transactions = True
    """Whether it goes on within its transactions. One that does not gives a transaction only when it has all of it."""
    malformed: dict[int, str] | None = None
    """The index of each malformed record among the rows, and a part of its message; None where there are no such records."""

    def take_away(self) -> None:
        """Make the source unreachable."""
        raise NotImplementedError

    def bring_back(self) -> None:
        """Make it reachable again."""
        raise NotImplementedError

    @property
    def connector(self) -> Connector:
        """The declaration."""
        return Connector(
            self.schema.name, "c", ConnectorDirection.INPUT, self.transport, self.config, self.format, self.format_config
        )

    def new(self, references: References = NO_REFERENCES) -> InputTransport:
        """A transport that is not open."""
        return open_input(self.connector, self.schema, references, _PIPELINE)

    def opened(self, position: Any = None, references: References = NO_REFERENCES) -> InputTransport:
        """A transport that is open; a position has been stored and read."""
        made = self.new(references)
        made.open(None if position is None else json.loads(json.dumps(position)))
        return made

    def read(self, source: InputTransport, rows: int) -> list[InputChunk]:
        """Chunks with so many rows, and the end where there is one."""
        chunks: list[InputChunk] = []
        deadline = time.monotonic() + PATIENCE_S
        while True:
            got = sum(len(rows_of(chunk)) for chunk in chunks)
            if (chunks and chunks[-1].end_of_input) or (got >= rows and not self.ends):
                return chunks
            assert time.monotonic() < deadline, f"{got} of {rows} rows came within {PATIENCE_S} s"
            chunk = source.read(self.chunk, 0.2)
            if chunk is not None:
                chunks.append(chunk)


def rows_of(*chunks: InputChunk) -> list[dict[str, Any]]:
    """The rows that chunks insert."""
    rows = [row for chunk in chunks if chunk.changes is not None for row in chunk.changes.rows.to_pylist()]
    assert all(row[OP] == int(Op.INSERT) for row in rows)
    return [{name: value for name, value in row.items() if not name.startswith("__")} for row in rows]


class InputConformance:
    """The suite. A test class of a connector has a fixture ``case``."""

    def test_what_it_says_of_itself(self, case: InputCase) -> None:
        check_definition(case.connector)

    def test_wrong_declarations_are_refused(self, case: InputCase) -> None:
        check_refusals(case.connector, case.schema)

    def test_options_may_be_references(self, case: InputCase) -> None:
        references = check_references(case.connector, case.schema)
        hidden = {name: f"${{env:{name}}}" for name in references.env}
        given = open_input(replace(case.connector, transport_config={**case.config, **hidden}), case.schema, references, _PIPELINE)
        given.open(None)
        try:
            assert rows_of(*case.read(given, len(case.rows))) == case.rows
        finally:
            given.close()

    def test_every_row_comes_once_and_in_order(self, case: InputCase) -> None:
        source = case.opened()
        try:
            chunks = case.read(source, len(case.rows))
        finally:
            source.close()
        assert rows_of(*chunks) == case.rows
        assert sum(chunk.records for chunk in chunks) == len(case.rows)
        assert [chunk.end_of_input for chunk in chunks[:-1]] == [False] * (len(chunks) - 1)
        assert chunks[-1].end_of_input is case.ends
        assert not case.rows or sum(chunk.size_bytes for chunk in chunks) > 0

    def test_it_goes_on_from_every_place(self, case: InputCase) -> None:
        definition = definition_of(case.connector)
        assert isinstance(definition, InputDefinition)
        if not definition.seekable:
            pytest.skip("its source has no positions")
        source = case.opened()
        chunks = case.read(source, len(case.rows))
        source.close()
        seen = 0
        for chunk in chunks:
            seen += len(rows_of(chunk))
            if chunk.transaction is ChunkInTransaction.MORE and not case.keeps_places_in_transactions:
                continue
            again = case.opened(chunk.position)
            rest = case.read(again, len(case.rows) - seen) if case.ends or seen < len(case.rows) else []
            again.close()
            assert rows_of(*rest) == case.rows[seen:], f"after {seen} rows, at {chunk.position}"

    def test_an_end_stays_an_end(self, case: InputCase) -> None:
        if not case.ends:
            pytest.skip("it has no end")
        source = case.opened()
        last = case.read(source, len(case.rows))[-1]
        source.close()
        again = case.opened(last.position)
        rest = case.read(again, 0)
        again.close()
        assert rows_of(*rest) == []
        assert rest[-1].end_of_input

    def test_closing_ends_a_read_and_may_be_repeated(self, case: InputCase) -> None:
        never_opened = case.new()
        never_opened.close()
        source = case.opened()
        ended = threading.Event()

        def read_on() -> None:
            try:
                for _ in range(1000):
                    chunk = source.read(1, 60)
                    if chunk is None or chunk.end_of_input:
                        break
            except ConnectorFailure:
                # A source that is let go of may say so.
                pass
            finally:
                ended.set()

        thread = threading.Thread(target=read_on, daemon=True)
        thread.start()
        time.sleep(0.05)
        source.close()
        assert ended.wait(10), "a read goes on after the input was closed"
        source.close()

    def test_a_read_that_comes_after_the_end_is_over_at_once(self, case: InputCase) -> None:
        source = case.opened()
        case.read(source, len(case.rows))
        source.close()
        begun = time.monotonic()
        with suppress(ConnectorFailure):
            source.read(1, 60)
        assert time.monotonic() - begun < 10, "it waits for rows of a source that it has let go of"

    def test_malformed_records_are_named_and_cost_nothing_else(self, case: InputCase) -> None:
        source = case.opened()
        chunks = case.read(source, len(case.rows))
        source.close()
        errors = {error.index: error.message for chunk in chunks for error in chunk.parse_errors}
        assert sum(chunk.num_parse_errors for chunk in chunks) == len(case.malformed or {})
        assert set(errors) == set(case.malformed or {})
        for index, part in (case.malformed or {}).items():
            assert part in errors[index]

    def test_lag_ends_at_nothing(self, case: InputCase) -> None:
        source = case.opened()
        try:
            if not isinstance(source, Lagging):
                pytest.skip("its source does not say how much it has")
            first = source.lag()
            case.read(source, len(case.rows))
            deadline = time.monotonic() + PATIENCE_S
            while (last := source.lag()) is not None and last.records:
                # A source may be asked now and then only.
                assert not case.ends, "a lag is left at the end"
                assert time.monotonic() < deadline, f"the lag stays {last}"
                assert source.read(case.chunk, 0.2) is None
        finally:
            source.close()
        for lag in (first, last):
            for figure in () if lag is None else (lag.records, lag.bytes, lag.seconds):
                assert figure is None or figure >= 0

    def test_nothing_is_read_before_it_may_and_all_is_counted(self, case: InputCase, tmp_path: Path) -> None:
        reader, endpoint = self._reader(case, tmp_path)
        reader.set_paused(True)
        reader.set_active(True)
        reader.start()
        try:
            time.sleep(0.05)
            assert endpoint.metrics.total_records == 0
            assert reader.take() == []
            reader.set_paused(False)
            self._until(lambda: reader.has_work, "the first rows")
            reader.set_paused(True)
            assert not reader.has_work, "what was read waits until it may be used"
            assert reader.take() == []
            reader.set_paused(False)
            self._take_all(case, reader, endpoint)
            wire = endpoint.to_wire()
            figures = wire["metrics"]
            assert (figures["total_records"], figures["num_parse_errors"]) == (len(case.rows), len(case.malformed or {}))
            assert (figures["num_transport_errors"], figures["end_of_input"]) == (0, case.ends)
            assert (wire["fatal_error"], wire["paused"]) == (None, False)
        finally:
            reader.close()

    def test_a_source_that_goes_and_comes_back(self, case: InputCase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        if not case.can_be_away:
            pytest.skip("its source is always there")
        set_waits(monkeypatch, first_s=0.02, longest_s=0.2)
        case.take_away()
        try:
            with pytest.raises(TransientConnectorFailure):
                self._read_one(case)
            reader, endpoint = self._reader(case, tmp_path)
            reader.set_active(True)
            reader.start()
            self._until(lambda: endpoint.health.trouble is not None, "the input says that its source is away")
            assert endpoint.to_wire()["health"]["status"] == "Unhealthy"
        finally:
            case.bring_back()
        try:
            self._take_all(case, reader, endpoint)
            self._until(lambda: endpoint.health.is_good, "the input works again")
            assert endpoint.fatal_error is None
            assert endpoint.metrics.transport_errors.count > 0
        finally:
            reader.close()

    def _take_all(self, case: InputCase, reader: ConnectorInput, endpoint: InputEndpoint) -> None:
        metrics = endpoint.metrics
        self._until(lambda: metrics.total_records == len(case.rows) and metrics.end_of_input == case.ends, "all rows")
        taken: list[dict[str, Any]] = []
        while reader.has_work:
            taken += rows_of(*reader.take())
        assert taken == case.rows

    @staticmethod
    def _read_one(case: InputCase) -> None:
        source = case.new()
        try:
            source.open(None)
            case.read(source, 1)
        finally:
            source.close()

    @staticmethod
    def _reader(case: InputCase, folder: Path) -> tuple[ConnectorInput, InputEndpoint]:
        endpoint = InputEndpoint(case.connector.endpoint, case.schema.name, case.connector)
        definition = definition_of(case.connector)
        reader = ConnectorInput(
            endpoint,
            ConnectorOptions(max_batch_size=case.chunk),
            case.new,
            lambda *_: None,
            PipelineLog(folder / "conformance.log", "conformance"),
            table=Table(case.schema.name, case.schema.columns),
            workers=1,
            seekable=isinstance(definition, InputDefinition) and definition.seekable,
        )
        return reader, endpoint

    @staticmethod
    def _until(condition: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not condition():
            assert time.monotonic() < deadline, f"it took too long until {what}"
            time.sleep(0.01)
