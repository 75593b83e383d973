"""Looking into a pipeline: metrics, profiles, the dataflow graph, support bundles."""

from __future__ import annotations

import json
from collections.abc import Generator
from pathlib import Path
from typing import Any

from airflow_pipelines.sdk.pipelines.base import PipelineBase
from airflow_pipelines.sdk.wire import lines_of

BUNDLE_S = 300.0
"""How long a support bundle is waited for: the program is compiled for it."""


class PipelineDiagnostics(PipelineBase):
    """What helps to find out how a pipeline fares, and why."""

    def metrics(self, format: str = "prometheus") -> Any:
        """The pipeline's counters for a monitoring system.

        :param format: ``prometheus`` for its text form, ``json`` for a list with one object per metric
        :returns: a text, or a list of dictionaries with ``key, type, description, values``
        :raises PipelineAPIError: when the pipeline has no host, or there is no such format
        """
        return self.client.get(self._path("metrics"), params={"format": format})

    def time_series(self) -> dict[str, Any]:
        """How throughput, memory and storage changed in the last minute.

        :returns: ``now``, and ``samples`` with ``t`` (milliseconds since the epoch), ``r`` (records processed), ``m`` (bytes of
            memory) and ``s`` (bytes of storage), oldest first
        :raises PipelineAPIError: when the pipeline has no host
        """
        series: dict[str, Any] = self.client.get(self._path("time_series"))
        return series

    def follow_time_series(self) -> Generator[dict[str, int], None, None]:
        """The samples of the last minute, then each new one until the pipeline stops. Close the generator to stop following.

        :returns: a generator of samples as in :meth:`time_series`
        :raises PipelineAPIError: when the pipeline has no host
        """
        with self.client.stream("GET", self._path("time_series_stream")) as response:
            for line in lines_of(response):
                if line.strip():
                    yield json.loads(line)

    def circuit_profile(self) -> dict[str, Any]:
        """What the newest steps cost, operator by operator, and how Spark carries out their queries.

        :returns: ``views`` and ``operators`` with their times and rows, ``plans`` with the physical plan of each query, and
            ``recent_steps``
        :raises PipelineAPIError: when the pipeline has no host
        """
        profile: dict[str, Any] = self.client.get(self._path("circuit_json_profile"))
        return profile

    def dataflow_graph(self) -> dict[str, Any]:
        """What each relation of the program is computed from, and by which strategy.

        :returns: ``mir`` has the nodes by relation, ``sources`` the lines of the program
        :raises PipelineAPIError: when the program does not compile
        """
        graph: dict[str, Any] = self.client.get(self._path("dataflow_graph"))
        return graph

    def stream_graph(self) -> dict[str, Any]:
        """The operators of the stream program, and how elements go from one to the other.

        :returns: ``execution_plan`` with the nodes and their predecessors, ``operators`` with what names their state, and the
            program's ``sources``, ``inputs`` and ``outputs``
        :raises PipelineAPIError: when there is no stream program, or it is not compiled
        """
        graph: dict[str, Any] = self.client.get(self._path("stream_graph"))
        return graph

    def stream_picture(self, output_path: str | None = None) -> str:
        """The stream program as a picture: a box for operators that hand elements on directly, and arrows for the other ways.

        :param output_path: a file to write it to as well
        :returns: an SVG document; in a notebook, ``IPython.display.SVG(pipeline.stream_picture())`` shows it
        :raises PipelineAPIError: as :meth:`stream_graph`
        :raises OSError: when the file cannot be written
        """
        text = str(self.client.get(self._path("stream_graph"), params={"format": "svg"}))
        if output_path is not None:
            Path(output_path).write_text(text, encoding="utf-8")
        return text

    def support_bundle(
        self,
        output_path: str | None = None,
        *,
        collect: bool = True,
        limit: int | None = None,
        circuit_profile: bool = True,
        heap_profile: bool = True,
        metrics: bool = True,
        logs: bool = True,
        stats: bool = True,
        pipeline_config: bool = True,
        system_config: bool = True,
        dataflow_graph: bool = True,
        pipeline_events: bool = True,
    ) -> bytes:
        """Diagnostic information about the pipeline, whether it runs or not.

        :param output_path: a file to write it to as well
        :param collect: whether to collect what there is now; otherwise the bundle has earlier collections only
        :param limit: how many collections it has at most; the newest three are kept
        :param circuit_profile: whether it has what the newest steps cost
        :param heap_profile: whether it should have a profile of the memory, which pipelines on Spark do not have
        :param metrics: whether it has the metrics
        :param logs: whether it has the log
        :param stats: whether it has the statistics
        :param pipeline_config: whether it has the pipeline's descriptor
        :param system_config: whether it has what there is to say of the service
        :param dataflow_graph: whether it has the dataflow graph
        :param pipeline_events: whether it has the events
        :returns: a ZIP file; ``metadata.json`` says what it has, and why not more
        :raises PipelineAPIError: when there is no such pipeline, or ``limit`` is below 1
        :raises OSError: when the file cannot be written
        """
        params = {
            "collect": collect,
            "limit": limit,
            "circuit_profile": circuit_profile,
            "heap_profile": heap_profile,
            "metrics": metrics,
            "logs": logs,
            "stats": stats,
            "pipeline_config": pipeline_config,
            "system_config": system_config,
            "dataflow_graph": dataflow_graph,
            "pipeline_events": pipeline_events,
        }
        content: bytes = self.client.get(self._path("support_bundle"), params=params, timeout_s=BUNDLE_S)
        return _saved(content, output_path)

    def start_samply_profile(self, duration: int = 30) -> None:
        """Profile the native code of the pipeline, of which there is none on Spark: see :meth:`circuit_profile`.

        :param duration: seconds
        :raises PipelineAPIError: with the code ``NotSupported``
        """
        self.client.post(self._path("samply_profile"), params={"duration_secs": duration})

    def get_samply_profile(self, output_path: str | None = None) -> bytes:
        """The profile of the native code of the pipeline, of which there is none on Spark: see :meth:`circuit_profile`.

        :param output_path: a file to write it to as well
        :returns: a gzip file
        :raises PipelineAPIError: with the code ``NotSupported``
        """
        content: bytes = self.client.get(self._path("samply_profile"))
        return _saved(content, output_path)


def _saved(content: bytes, output_path: str | None) -> bytes:
    if output_path is not None:
        Path(output_path).write_bytes(content)
    return content
