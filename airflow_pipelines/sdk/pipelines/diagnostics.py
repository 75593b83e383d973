"""The diagnostics of a pipeline: metrics, profiles, the dataflow graph, support bundles."""

from __future__ import annotations

import json
from collections.abc import Generator
from pathlib import Path
from typing import Any

from airflow_pipelines.sdk.pipelines.base import PipelineBase
from airflow_pipelines.sdk.wire import lines_of

BUNDLE_S = 300.0
"""The number of seconds to wait for a support bundle, for which the program is compiled."""


class PipelineDiagnostics(PipelineBase):
    """The methods that show the state of a pipeline and its causes."""

    def metrics(self, format: str = "prometheus") -> Any:
        """Return the pipeline's counters for a monitoring system.

        :param format: ``prometheus`` for its text form, ``json`` for a list with one object per metric
        :returns: a text, or a list of dictionaries with ``key, type, description, values``
        :raises PipelineAPIError: when the pipeline has no host, or there is no such format
        """
        return self.client.get(self._path("metrics"), params={"format": format})

    def time_series(self) -> dict[str, Any]:
        """Return the throughput, memory and storage of the last minute.

        :returns: ``now``, and ``samples`` with ``t`` (milliseconds since the epoch), ``r`` (records processed), ``m`` (bytes of
            memory) and ``s`` (bytes of storage), oldest first
        :raises PipelineAPIError: when the pipeline has no host
        """
        series: dict[str, Any] = self.client.get(self._path("time_series"))
        return series

    def follow_time_series(self) -> Generator[dict[str, int], None, None]:
        """Yield the samples of the last minute, then each new one until the pipeline stops. Close the generator to stop following.

        :returns: a generator of samples as in :meth:`time_series`
        :raises PipelineAPIError: when the pipeline has no host
        """
        with self.client.stream("GET", self._path("time_series_stream")) as response:
            for line in lines_of(response):
                if line.strip():
                    yield json.loads(line)

    def circuit_profile(self) -> dict[str, Any]:
        """Return the cost of the newest steps by operator, and Spark's plans for their queries.

        :returns: ``views`` and ``operators`` with their times and rows, ``plans`` with the physical plan of each query, and
            ``recent_steps``
        :raises PipelineAPIError: when the pipeline has no host
        """
        profile: dict[str, Any] = self.client.get(self._path("circuit_json_profile"))
        return profile

    def dataflow_graph(self) -> dict[str, Any]:
        """Return the inputs of each relation of the program, and the strategy by which it is computed.

        :returns: ``mir`` has the nodes by relation, ``sources`` the lines of the program
        :raises PipelineAPIError: when the program does not compile
        """
        graph: dict[str, Any] = self.client.get(self._path("dataflow_graph"))
        return graph

    def stream_graph(self) -> dict[str, Any]:
        """Return the operators of the stream program and the paths of elements between them.

        :returns: ``execution_plan`` with the nodes and their predecessors, ``operators`` with the names of their state, and the
            program's ``sources``, ``inputs`` and ``outputs``
        :raises PipelineAPIError: when there is no stream program, or it is not compiled
        """
        graph: dict[str, Any] = self.client.get(self._path("stream_graph"))
        return graph

    def stream_picture(self, output_path: str | None = None) -> str:
        """Return the stream program as a picture: a box for operators that pass elements on directly, and arrows for other paths.

        :param output_path: a file to write the picture to as well
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
        """Return diagnostic information about the pipeline, running or not.

        :param output_path: a file to write it to as well
        :param collect: True to collect the present information; otherwise the bundle has only earlier collections
        :param limit: the maximum number of collections in the bundle; the newest three are kept
        :param circuit_profile: True to include the cost of the newest steps
        :param heap_profile: True to include a memory profile, which pipelines on Spark do not have
        :param metrics: True to include the metrics
        :param logs: True to include the log
        :param stats: True to include the statistics
        :param pipeline_config: True to include the pipeline's descriptor
        :param system_config: True to include information about the service
        :param dataflow_graph: True to include the dataflow graph
        :param pipeline_events: True to include the events
        :returns: a ZIP file; its ``metadata.json`` lists the contents, and the reasons for missing ones
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
        return _save(content, output_path)

    def start_samply_profile(self, duration: int = 30) -> None:
        """Profile the native code of the pipeline. There is none on Spark: see :meth:`circuit_profile`.

        :param duration: seconds
        :raises PipelineAPIError: with the code ``NotSupported``
        """
        self.client.post(self._path("samply_profile"), params={"duration_secs": duration})

    def get_samply_profile(self, output_path: str | None = None) -> bytes:
        """Return the profile of the pipeline's native code. There is none on Spark: see :meth:`circuit_profile`.

        :param output_path: a file to write it to as well
        :returns: a gzip file
        :raises PipelineAPIError: with the code ``NotSupported``
        """
        content: bytes = self.client.get(self._path("samply_profile"))
        return _save(content, output_path)


def _save(content: bytes, output_path: str | None) -> bytes:
    if output_path is not None:
        Path(output_path).write_bytes(content)
    return content
