"""All inputs of a pipeline: rows for a stream that has ended are refused before anybody is told that they were taken."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from airflow_pipelines.connectors.common_options import ConnectorOptions
from airflow_pipelines.connectors.transports.relation_end import RelationEnd, RelationEndOptions
from airflow_pipelines.contract.error_codes import ErrorCode
from airflow_pipelines.contract.problems import Problem
from airflow_pipelines.engine.storage.connector_state import InputState
from airflow_pipelines.host.inputs.connector_input import ConnectorInput
from airflow_pipelines.host.inputs.input_endpoints import InputEndpoints
from airflow_pipelines.host.inputs.inputs import InputEndpoint
from airflow_pipelines.host.state.pipeline_log import PipelineLog
from airflow_pipelines.program.connectors import Connector, ConnectorDirection
from airflow_pipelines.program.relations import Table
from airflow_pipelines.program.streams import STREAM_END
from airflow_pipelines.rows.schema import Column, RelationSchema
from airflow_pipelines.rows.types import ColumnType
from tests.connectors.sources import NumberInput, Source

_END = "messages.end"


class _Inputs:
    """The inputs of a pipeline whose stream program reads a table with a connector, and other tables without an end."""

    def __init__(self, folder: Path) -> None:
        self.has_ended = False
        self.all = InputEndpoints()
        self._log = PipelineLog(folder / "pipeline.log", "tested")
        plain = Table("visits", (Column("x", ColumnType("INTEGER")),))
        self._add(InputEndpoint("visits.file", "visits"), plain, lambda: NumberInput(Source(1), "visits"))
        columns = (("split", "BIGINT"), ("kind", "TINYINT"), ("records", "BIGINT"), ("payload", "VARBINARY"))
        hidden = Table("messages", tuple(Column(name, ColumnType(kind, nullable=False)) for name, kind in columns))
        config = {"uid": "seen", "ends_with": ("visits.file",)}
        connector = Connector("messages", "end", ConnectorDirection.INPUT, STREAM_END, transport_config=config)
        options, schema = RelationEndOptions.model_validate(config), RelationSchema("messages", hidden.columns)
        endpoint = InputEndpoint(_END, "messages", connector)
        self._add(endpoint, hidden, lambda: RelationEnd(options, schema, lambda: self.has_ended))

    def _add(self, endpoint: InputEndpoint, table: Table, opener: object) -> None:
        self.all.add(
            ConnectorInput(
                endpoint,
                ConnectorOptions(),
                opener,
                lambda *_: None,
                self._log,
                table=table,
                workers=1,
                seekable=True,  # type: ignore[arg-type]
            )
        )

    def until_told(self) -> None:
        endpoint = self.all.get(_END)
        assert endpoint is not None
        self.all.set_active(True)
        self.all.start()
        deadline = time.monotonic() + 10
        while not endpoint.metrics.end_of_input:
            assert time.monotonic() < deadline, "it took too long"
            time.sleep(0.002)


def test_rows_for_a_stream_that_has_ended_are_refused(tmp_path: Path) -> None:
    inputs = _Inputs(tmp_path)
    inputs.all.check_open({"visits", "others"})
    inputs.has_ended = True
    inputs.until_told()
    inputs.all.check_open({"others"})
    with pytest.raises(Problem, match=r"for table visits: .*'seen' has ended with .*\(visits.file\).*stays_open=True") as refused:
        inputs.all.check_open({"visits", "others"})
    assert refused.value.code is ErrorCode.STREAM_ENDED


def test_rows_for_a_stream_that_had_ended_before_the_start_are_refused(tmp_path: Path) -> None:
    inputs = _Inputs(tmp_path)
    inputs.all.restore(_END, InputState("messages", declared=True, position={"ended": True}), frozenset({_END}), frozenset())
    with pytest.raises(Problem, match="No row was taken for table visits"):
        inputs.all.check_open({"visits"})
