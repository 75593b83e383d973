"""The environment of a program: where streams begin, and how they are run."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

from airflow_pipelines.datastream.collecting import CloseableIterator, CollectSink
from airflow_pipelines.datastream.data_stream import DataStream, Port
from airflow_pipelines.streams.errors import StreamProgramError
from airflow_pipelines.streams.failures import user_traceback
from airflow_pipelines.streams.graph.chains import Defaults, Plan, plan_of
from airflow_pipelines.streams.graph.nodes import Graph, Node, checked_parallelism
from airflow_pipelines.streams.local import LocalRunner
from airflow_pipelines.streams.operators.base import TaskSettings
from airflow_pipelines.streams.operators.source import Read
from airflow_pipelines.streams.sources import CollectionSource, Source
from airflow_pipelines.streams.values import isolate
from airflow_pipelines.streams.watermarks import TimestampsAndWatermarks


@dataclass(frozen=True)
class ExecutionResult:
    """What is left of a program that has ended.

    :param net_runtime: ms
    :param accumulators: what functions have counted
    """

    net_runtime: int
    accumulators: dict[str, Any] = field(default_factory=dict)


class StreamExecutionEnvironment:
    """The program: streams are added to it, and it runs them."""

    def __init__(self) -> None:
        self.graph = Graph()
        self._sinks: list[Node] = []
        self._parallelism = 1

    @staticmethod
    def get_execution_environment() -> StreamExecutionEnvironment:
        """The environment of this program.

        :returns: a new one
        """
        return StreamExecutionEnvironment()

    def set_parallelism(self, parallelism: int) -> StreamExecutionEnvironment:
        """Set the number of tasks of operators that say nothing else.

        :param parallelism: at least 1
        :returns: this environment
        """
        self._parallelism = checked_parallelism(parallelism)
        return self

    def get_parallelism(self) -> int:
        """The number of tasks of operators that say nothing else.

        :returns: the number
        """
        return self._parallelism

    def from_collection(self, collection: Collection[Any], type_info: Any = None) -> DataStream:
        """A stream of the elements of a collection, which keeps their order.

        :param collection: the elements
        :param type_info: their declared type; optional
        :returns: the stream
        """
        source = CollectionSource([isolate(value) for value in collection])
        return self._add_source(source, None, "Source: Collection Source", type_info, parallelism=1, non_parallel=True)

    def from_source(
        self, source: Source, watermark_strategy: TimestampsAndWatermarks | None, source_name: str, type_info: Any = None
    ) -> DataStream:
        """A stream of what a source gives.

        :param source: the source
        :param watermark_strategy: how its elements get event time
        :param source_name: for people
        :param type_info: their declared type; optional
        :returns: the stream
        """
        return self._add_source(source, watermark_strategy, f"Source: {source_name}", type_info)

    def _add_source(
        self, source: Source, event_time: TimestampsAndWatermarks | None, name: str, type_info: Any, **settings: Any
    ) -> DataStream:
        node = self.graph.add(
            name,
            Read(source, event_time),
            [],
            output_type=type_info,
            convert=None if type_info is None else type_info.converter(),
            **settings,
        )
        return DataStream(self, (Port(node),))

    def add_sink_node(self, node: Node) -> None:
        """A node that the next execution runs.

        :param node: a sink
        """
        self._sinks.append(node)

    def execute(self, job_name: str | None = None) -> ExecutionResult:  # noqa: ARG002
        """Run all sinks that were added since the last execution, with all that they need, until their inputs end.

        :param job_name: of the run
        :returns: what is left of it
        :raises StreamProgramError: when there is nothing to run
        """
        runner = self._runner(self._take_sinks())
        began = time.monotonic()
        try:
            runner.run()
            runner.finish()
        except BaseException as error:  # noqa: BLE001 (raised again)
            runner.abort()
            raise error.with_traceback(user_traceback(error.__traceback__)) from error.__cause__
        return ExecutionResult(int((time.monotonic() - began) * 1000), runner.metrics())

    def collect(self, stream: DataStream, name: str | None) -> CloseableIterator:  # noqa: ARG002
        """Run the program and bring a stream here.

        :param stream: the stream
        :param name: of the run
        :returns: its elements
        """
        sink = CollectSink()
        stream.sink_to(sink).name("Sink: Collect")
        runner = self._runner(self._take_sinks())

        def take() -> deque[Any] | None:
            try:
                while not sink.values:
                    if runner.has_ended:
                        return None
                    runner.step()
            except BaseException as error:  # noqa: BLE001 (raised again)
                runner.abort()
                raise error.with_traceback(user_traceback(error.__traceback__)) from error.__cause__
            return sink.values

        return CloseableIterator(take, runner.close)

    def _take_sinks(self) -> list[Node]:
        if not self._sinks:
            raise StreamProgramError(
                "There is nothing to execute: no sink was added since the last execution. End a stream with print(),"
                " sink_to(...) or execute_and_collect()."
            )
        sinks, self._sinks = self._sinks, []
        return sinks

    def _plan(self, sinks: list[Node]) -> Plan:
        return plan_of(self.graph, [sink.id for sink in sinks], Defaults(self._parallelism))

    def _runner(self, sinks: list[Node]) -> LocalRunner:
        return LocalRunner(self._plan(sinks), TaskSettings())
