"""Reading a connector in a thread of its own: what fails for the moment is tried again from where it broke off."""

from __future__ import annotations

import json
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from airflow_pipelines.connectors.base import InputChunk, Lag
from airflow_pipelines.connectors.common_options import ConnectorOptions
from airflow_pipelines.host.inputs.connector_input import ConnectorInput
from airflow_pipelines.host.inputs.inputs import Consumed, InputEndpoint
from airflow_pipelines.host.metrics.monitoring import measure
from airflow_pipelines.host.state.pipeline_log import PipelineLog
from airflow_pipelines.program.relations import Table
from airflow_pipelines.rows.schema import Column
from airflow_pipelines.rows.types import ColumnType
from tests.connectors.sources import NumberInput, Source
from tests.connectors.waits import set_waits


class Input:
    """A reader of a source, and what it gives."""

    def __init__(
        self,
        folder: Path,
        source: Source,
        *,
        seekable: bool = True,
        transport: type[NumberInput] = NumberInput,
        options: ConnectorOptions | None = None,
    ) -> None:
        self.source = source
        self.log = PipelineLog(folder / "pipeline.log", "tested")
        self.endpoint = InputEndpoint("t.c", "t")
        self.arrived = threading.Event()
        table = Table("t", (Column("x", ColumnType("INTEGER")),))
        self.reader = ConnectorInput(
            self.endpoint,
            options or ConnectorOptions(),
            lambda: transport(source, "t"),
            lambda *_: self.arrived.set(),
            self.log,
            table=table,
            workers=1,
            seekable=seekable,
        )

    def run(self) -> Input:
        self.reader.set_active(True)
        self.reader.start()
        return self

    def until(self, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + 10
        while not condition():
            assert time.monotonic() < deadline, "it took too long"
            time.sleep(0.002)

    def take(self) -> list[int]:
        chunks = self.reader.take()
        for chunk in chunks:
            self.endpoint.consume(Consumed(chunk.records, chunk.size_bytes, chunk.position))
        return [value for chunk in chunks if chunk.changes is not None for value in chunk.changes.rows["x"].to_pylist()]

    def wire(self) -> dict[str, Any]:
        return self.endpoint.to_wire(errors=True)


@pytest.fixture(autouse=True)
def _short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    set_waits(monkeypatch, first_s=0.001, longest_s=0.01)


def test_reading_goes_on_where_it_broke_off(tmp_path: Path) -> None:
    source = Source(1, 2, 3, 4)
    source.breaks_after = {0, 2, 3}
    given = Input(tmp_path, source).run()
    given.until(lambda: given.endpoint.metrics.end_of_input)
    assert given.take() == [1, 2, 3, 4]
    assert source.opened == [None, None, {"next": 2}, {"next": 3}]
    wire = given.wire()
    assert wire["health"] == {"status": "Healthy", "description": None}
    assert (wire["metrics"]["num_transport_errors"], wire["fatal_error"]) == (3, None)
    assert {error["message"] for error in wire["transport_errors"]} == {"the connection was lost"}
    given.reader.close()
    assert source.closed >= 4, "each connection is closed"


def test_a_start_by_hand_does_not_wait_for_other_inputs(tmp_path: Path) -> None:
    waits = ConnectorOptions(start_after=("first",))
    given = Input(tmp_path, Source(1, 2), options=waits).run()
    time.sleep(0.02)
    assert (given.wire()["paused"], given.source.opened) == (True, [])
    given.reader.set_paused(False)
    given.until(lambda: given.endpoint.metrics.end_of_input)
    assert given.take() == [1, 2]
    given.reader.close()
    # Nor does it after a restart.
    again = Input(tmp_path, Source(1, 2), options=waits)
    again.reader.note_restored(was_started=True)
    again.run()
    again.until(lambda: again.endpoint.metrics.end_of_input)
    again.reader.close()


def test_a_source_that_is_gone_for_a_while(tmp_path: Path) -> None:
    source = Source(1, 2)
    source.has_end = source.is_there = False
    given = Input(tmp_path, source).run()
    given.until(lambda: given.endpoint.metrics.transport_errors.count >= 3)
    assert given.wire()["health"] == {"status": "Unhealthy", "description": "the source is not there"}
    assert given.wire()["fatal_error"] is None
    source.is_there = True
    given.until(lambda: given.endpoint.metrics.total_records == 2)
    given.until(lambda: given.endpoint.health.is_good)
    source.is_there = False
    # Which failure is shown depends on how soon one looks: that of the read, or that of the next try to open it.
    given.until(lambda: not given.endpoint.health.is_good)
    assert given.take() == [1, 2], "what was read is taken meanwhile"
    source.values.append(3)
    source.is_there = True
    given.until(lambda: given.endpoint.metrics.total_records == 3)
    assert given.take() == [3]
    given.reader.close()
    assert "connector t.c: works again" in (tmp_path / "pipeline.log").read_text()


def test_a_source_without_a_position_is_tried_again_before_its_first_row_only(tmp_path: Path) -> None:
    source = Source(1, 2, 3)
    source.breaks_after = {0, 2}
    given = Input(tmp_path, source, seekable=False).run()
    given.until(lambda: given.endpoint.fatal_error is not None)
    message = given.endpoint.fatal_error
    assert message is not None
    assert message.startswith("the connection was lost")
    assert "rows would come twice" in message
    assert given.take() == [1, 2]
    assert source.opened == [None, None]
    given.reader.close()


def test_the_end_does_not_wait_for_the_next_try(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    set_waits(monkeypatch, first_s=60.0, longest_s=60.0)
    source = Source(1)
    source.is_there = False
    given = Input(tmp_path, source).run()
    given.until(lambda: given.endpoint.health.trouble is not None)
    begun = time.monotonic()
    given.reader.close()
    assert time.monotonic() - begun < 2
    assert given.endpoint.fatal_error is None


def test_what_is_durable_is_committed_to_the_connection_that_is_there(tmp_path: Path) -> None:
    source = Source(1, 2)
    source.has_end = False
    source.breaks_after = {1}
    given = Input(tmp_path, source).run()
    given.until(lambda: given.endpoint.metrics.total_records == 2)
    given.reader.commit()
    assert source.committed == [], "no step has taken anything"
    given.take()
    given.reader.commit()
    assert source.committed == [], "no checkpoint and no journal has it"
    given.endpoint.keep(given.endpoint.position)
    given.reader.commit()
    assert source.committed == [{"next": 2}]
    source.is_there = False
    given.until(lambda: given.endpoint.health.trouble is not None)
    given.reader.commit()
    assert source.committed == [{"next": 2}]
    given.reader.close()


def test_how_far_an_input_is_behind(tmp_path: Path) -> None:
    source = Source(1)
    source.has_end = False
    given = Input(tmp_path, source)
    assert given.wire()["metrics"]["lag"] is None, "nothing is known yet"
    given.run()
    given.until(lambda: given.endpoint.measure_lag() == Lag(records=0))
    source.is_there = False
    given.until(lambda: given.endpoint.health.trouble is not None)
    assert given.wire()["metrics"]["lag"] is None
    source.values += [2, 3]
    source.is_there = True
    given.until(lambda: given.endpoint.metrics.total_records == 3)
    assert given.wire()["metrics"]["lag"] == {"records": 0, "bytes": None, "seconds": None}
    given.reader.close()


class _GaugedInput(NumberInput):
    def gauges(self) -> dict[str, int]:
        return {"iceberg_phase": 2 if self._next == len(self.source.values) else 0}


def test_figures_that_only_a_source_has_are_metrics(tmp_path: Path) -> None:
    def phases(given: Input) -> list[float]:
        inputs = json.loads(json.dumps([given.wire()]))
        measured = measure({"global_metrics": defaultdict(int), "inputs": inputs, "outputs": []}, "p", None)
        found = [metric for metric in measured if metric.name == "input_connector_iceberg_phase"]
        assert all(metric.labels == {"pipeline_name": "p", "endpoint": "t.c"} for metric in found)
        return [metric.value for metric in found]

    source = Source(1, 2)
    given = Input(tmp_path, source, transport=_GaugedInput)
    assert phases(given) == []
    given.run()
    given.until(lambda: given.endpoint.metrics.end_of_input)
    assert phases(given) == [2]
    given.reader.close()
    plain = Input(tmp_path, Source(1)).run()
    plain.until(lambda: plain.endpoint.metrics.end_of_input)
    assert phases(plain) == []
    plain.reader.close()


def test_where_no_checkpoint_can_go_on(tmp_path: Path) -> None:
    source = Source(1, 2)
    source.breaks_after = {0}
    given = Input(tmp_path, source, seekable=False)
    assert not given.reader.is_without_position, "nothing was read, so that it can begin anew"
    given.run()
    given.until(lambda: given.endpoint.metrics.end_of_input)
    assert given.reader.is_without_position
    assert given.take() == [1, 2]
    assert not given.reader.is_without_position, "the end of a source is a position"
    given.reader.close()
    other = Input(tmp_path, Source(1)).run()
    other.until(lambda: other.endpoint.metrics.end_of_input)
    assert not other.reader.is_without_position
    other.reader.close()


class Truncated(NumberInput):
    """Says with each of its chunks that all rows went before."""

    def read(self, max_records: int, timeout_s: float) -> InputChunk | None:
        chunk = super().read(max_records, timeout_s)
        if chunk is None or chunk.changes is None:
            return chunk
        return replace(chunk, changes=replace(chunk.changes, truncates=True))


@pytest.mark.parametrize("options", [{}, {"soft_delete": True}])
def test_a_table_that_cannot_be_truncated(tmp_path: Path, options: dict[str, Any]) -> None:
    endpoint = InputEndpoint("t.c", "t")
    reader = ConnectorInput(
        endpoint,
        ConnectorOptions.model_validate(options),
        lambda: Truncated(Source(1, 2), "t"),
        lambda *_: None,
        PipelineLog(tmp_path / "pipeline.log", "tested"),
        table=Table("t", (Column("x", ColumnType("INTEGER")),)),
        workers=1,
        refused_truncation=None if options else "it is full",
    )
    reader.set_active(True)
    reader.start()
    deadline = time.monotonic() + 10
    while endpoint.fatal_error is None:
        assert time.monotonic() < deadline
        time.sleep(0.002)
    reader.close()
    # With the first rows there was nothing to go yet.
    [first] = reader.take()
    assert first.changes is not None
    assert not first.changes.truncates
    reason = "with 'soft_delete' nothing is deleted" if options else "it is full"
    assert f"all rows of table t would have to go, and they cannot: {reason}. Clear the pipeline" in endpoint.fatal_error
