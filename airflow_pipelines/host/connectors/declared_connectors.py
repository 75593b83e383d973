"""The inputs and outputs that a program declares, each with a function that opens and reopens its transport."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from pyspark.sql import SparkSession

from airflow_pipelines.common.references import References
from airflow_pipelines.connectors.base import InputTransport, OutputTransport
from airflow_pipelines.connectors.common_options import ConnectorOptions
from airflow_pipelines.connectors.declarations import (
    connector_options,
    delivery_of,
    idle_transport_options,
    is_seekable,
)
from airflow_pipelines.connectors.definition import PipelineReference
from airflow_pipelines.connectors.indexes import key_columns
from airflow_pipelines.connectors.left_out import LeftOutRows
from airflow_pipelines.connectors.opening import open_input, open_output, open_relation_end, open_stream_source
from airflow_pipelines.connectors.start_check import check_usable
from airflow_pipelines.engine.allowed_changes import refused_truncation
from airflow_pipelines.engine.program import Program
from airflow_pipelines.engine.storage.fence import Fence
from airflow_pipelines.host.connectors.start_checks import check_snapshot, check_start_after
from airflow_pipelines.host.inputs.connector_input import ConnectorInput
from airflow_pipelines.host.inputs.inputs import InputEndpoint
from airflow_pipelines.host.outputs.outputs import OutputEndpoint, OutputServices
from airflow_pipelines.host.state.pipeline_log import PipelineLog
from airflow_pipelines.host.streams.stream_processes import StreamProcesses
from airflow_pipelines.program.connectors import Connector, ConnectorDirection
from airflow_pipelines.program.streams import STREAM_END, STREAM_SOURCE
from airflow_pipelines.rows.formats.defaults import Now


@dataclass(frozen=True, slots=True)
class ConnectorServices:
    """The services of a pipeline that its connectors get.

    :param pipeline: the pipeline
    :param references: the values of references in declarations
    :param now: the pipeline's clock
    :param workers: the number of the pipeline's workers; some limits apply to each
    :param positions: the folder in which outputs keep their positions, or None without storage
    :param fence: the run's epoch in the storage folder, or None without storage
    :param streams: starts the processes of the program's stream program; None without one
    :param spark: the application in which the pipeline runs
    """

    pipeline: PipelineReference
    references: References
    now: Now
    workers: int
    positions: Path | None
    fence: Fence | None
    streams: StreamProcesses | None
    spark: SparkSession


class DeclaredConnectors:
    """The connector declarations of one program."""

    def __init__(self, program: Program, services: ConnectorServices, log: PipelineLog) -> None:
        """Check all declarations.

        :param program: the program that declares the connectors
        :param services: the services of the pipeline
        :param log: the pipeline's log, which names options that have no effect
        :raises Problem: if a declaration compiles, but no pipeline can start with it
        """
        self._program = program
        self._services = services
        self._log = log
        self._begun = 0.0
        for connector in program.connectors:
            if connector.transport not in (STREAM_SOURCE, STREAM_END):
                check_usable(connector, program.schemas[connector.relation], program.indexes)
        self._options: Mapping[str, ConnectorOptions] = {
            connector.endpoint: connector_options(connector) for connector in program.connectors
        }
        sources = self._select(ConnectorDirection.INPUT)
        check_start_after({connector.endpoint: self._options[connector.endpoint] for connector in sources})
        for connector in program.connectors:
            self._name_idle_options(connector)

    def inputs(self, arrived: Callable[[int, int], None]) -> Iterator[ConnectorInput]:
        """Yield every declared input; none is opened yet.

        :param arrived: called as ``arrived(records, bytes)`` from connector threads when rows arrive
        """
        endpoints: dict[str, InputEndpoint] = {}
        for connector in self._select(ConnectorDirection.INPUT):
            options = self._options[connector.endpoint]
            endpoint = endpoints[connector.endpoint] = InputEndpoint(connector.endpoint, connector.relation, connector)
            endpoint.paused = options.paused
            yield ConnectorInput(
                endpoint,
                options,
                self._input_opener(connector, endpoints),
                arrived,
                self._log,
                table=self._program.tables[connector.relation],
                workers=self._services.workers,
                seekable=is_seekable(connector.transport),
                refused_truncation=self._refused_truncation(connector),
            )

    def outputs(self, services: OutputServices) -> Iterator[OutputEndpoint]:
        """Yield every declared output; none is opened yet.

        :param services: the services that outputs need besides
        """
        for connector in self._select(ConnectorDirection.OUTPUT):
            options = self._options[connector.endpoint]
            key = key_columns(options.index, connector.relation, self._program.indexes)
            left_out = LeftOutRows(key, options.on_error)
            opener = self._output_opener(connector, key, left_out)
            output = OutputEndpoint(connector, options, opener, delivery_of(connector), services, left_out, key)
            if output.sends_snapshot:
                check_snapshot(output.name, self._program.views.get(output.view))
            yield output

    def begin(self, begun: float) -> None:
        """Remember the time at which the pipeline began with its current storage, before an output is opened.

        :param begun: the time in seconds since the epoch
        """
        self._begun = begun

    def _refused_truncation(self, connector: Connector) -> str | None:
        """Return the reason why an input must not truncate its table, or None if it may."""
        table = self._program.tables[connector.relation]
        others = sorted(other.name for other in table.connectors if other.name != connector.name)
        return f"the table has other connectors ({', '.join(others)})" if others else refused_truncation(self._program, table)

    def _select(self, direction: ConnectorDirection) -> list[Connector]:
        return [connector for connector in self._program.connectors if connector.direction is direction]

    def _name_idle_options(self, connector: Connector) -> None:
        idle = self._options[connector.endpoint].without_effect(connector.direction)
        if idle:
            one = "an input" if connector.direction is ConnectorDirection.INPUT else "an output"
            self._log.info("connector %s: no effect on %s: %s", connector.endpoint, one, ", ".join(idle))
        if foreign := idle_transport_options(connector):
            self._log.warning(
                "connector %s: ignored, since %s does not have it: %s", connector.endpoint, connector.transport, ", ".join(foreign)
            )

    def _input_opener(self, connector: Connector, endpoints: Mapping[str, InputEndpoint]) -> Callable[[], InputTransport]:
        schema, services = self._program.schemas[connector.relation], self._services
        if connector.transport == STREAM_SOURCE:
            if services.streams is None:
                raise RuntimeError(f"{connector.endpoint} reads a stream program, whose processes nobody starts")
            reading = services.streams.reading
            return lambda: open_stream_source(connector, schema, reading)
        if connector.transport == STREAM_END:
            names = connector.transport_config["ends_with"]
            return lambda: open_relation_end(connector, schema, lambda: all(endpoints[name].has_ended for name in names))
        return lambda: open_input(connector, schema, services.references, services.pipeline, services.now, services.spark)

    def _output_opener(self, connector: Connector, key: tuple[str, ...], left_out: LeftOutRows) -> Callable[[], OutputTransport]:
        schema, services = self._program.schemas[connector.relation], self._services
        return lambda: open_output(
            connector,
            schema,
            services.references,
            replace(services.pipeline, begun=self._begun),
            key,
            services.positions,
            services.fence,
            left_out,
        )
