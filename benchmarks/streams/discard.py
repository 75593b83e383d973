"""A sink that throws elements away."""

from __future__ import annotations

from airflow_pipelines.datastream.connectors import Sink
from airflow_pipelines.streams.elements import Batch
from airflow_pipelines.streams.sinks import SinkWriter, SubtaskInfo


class Discard(Sink):
    """Takes elements and keeps none."""

    def open(self, subtask: SubtaskInfo) -> SinkWriter:  # noqa: ARG002
        """Begin."""
        return _Discarding()


class _Discarding(SinkWriter):
    def write(self, batch: Batch) -> None:
        pass
