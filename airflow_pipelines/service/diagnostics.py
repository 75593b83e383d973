"""The remote diagnostics of a pipeline: its dataflow graph, and support bundles."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Mapping, Set
from typing import Any, NoReturn

from airflow_pipelines.contract.error_codes import ErrorCode
from airflow_pipelines.contract.problems import Problem
from airflow_pipelines.service import errors
from airflow_pipelines.service.control_plane import ControlPlane
from airflow_pipelines.service.events import event_to_wire
from airflow_pipelines.service.graphs.stream_graph import ChainGraph
from airflow_pipelines.service.graphs.svg import picture
from airflow_pipelines.service.hosts import HostTimeout, HostUnreachable, problem_of
from airflow_pipelines.service.records import PipelineRecord, Selector, descriptor
from airflow_pipelines.service.support_bundles import BundlePart, SkippedPart, Source, SupportBundles
from airflow_pipelines.service.version import platform_version

LOG_BYTES = 16 << 20
"""The maximum number of bytes of a log in a bundle; the newest are taken."""
NO_NATIVE_PROFILER = "pipelines run on Spark, of which there is no such profile: see circuit_profile"


class Diagnostics:
    """The diagnostics of the pipelines of a control plane.

    :param control_plane: the control plane
    """

    def __init__(self, control_plane: ControlPlane) -> None:
        self._control_plane = control_plane
        self._bundles = SupportBundles(control_plane.files)

    def dataflow(self, name: str) -> dict[str, Any]:
        """Return the dataflow graph of a pipeline's program, which is compiled for it.

        :param name: the pipeline's name
        :raises Problem: when the program does not compile, or there is no compiler
        """
        return self._dataflow(self._control_plane.pipeline(name))

    def stream_graph(self, name: str) -> dict[str, Any]:
        """Return the operators of a pipeline's stream program and the paths of elements between them.

        :param name: the pipeline's name
        :returns: ``execution_plan`` with the nodes and their predecessors, ``operators`` with the names of their state, and the
            program's ``sources``, ``inputs`` and ``outputs``
        :raises Problem: when the pipeline has no stream program, or the program is not compiled
        """
        streams = self._streams(name)
        return {
            "name": streams["name"],
            "execution_plan": json.loads(streams["execution_plan"]) if streams["execution_plan"] else {"nodes": []},
            **{part: streams[part] for part in ("operators", "sources", "inputs", "outputs")},
        }

    def stream_picture(self, name: str) -> str:
        """Return the stream graph as a picture, in SVG.

        :param name: the pipeline's name
        :raises Problem: as :meth:`stream_graph`
        """
        return picture(ChainGraph.of_plan(self._streams(name)["execution_plan"]), name)

    def support_bundle(self, name: str, wanted: Set[BundlePart], *, collect: bool, limit: int) -> bytes:
        """Return a pipeline's support bundle.

        :param name: the pipeline's name
        :param wanted: the parts to include
        :param collect: True to collect the present information first
        :param limit: the maximum number of collections in it
        :returns: a ZIP file
        """
        record = self._control_plane.pipeline(name)
        if collect:
            self._bundles.collect(record, wanted, self._sources(record))
        return self._bundles.bundle(record, wanted, limit)

    def _streams(self, name: str) -> dict[str, Any]:
        record = self._control_plane.pipeline(name)
        if not record.stream_files:
            raise Problem(ErrorCode.INVALID_PARAM, f"Pipeline '{name}' has no stream program, only SQL: see its dataflow graph")
        streams: dict[str, Any] | None = (record.program_info or {}).get("streams")
        if streams is None:
            raise Problem(
                ErrorCode.PROGRAM_NOT_COMPILED,
                f"The program of pipeline '{name}' is not compiled (its status is {record.program_status}), so that its graph is "
                "not known. Wait until it is compiled, or correct it",
            )
        return streams

    def _sources(self, record: PipelineRecord) -> Mapping[str, Source]:
        return {
            "circuit_profile.zip": lambda: self._read_from_host(record, "circuit_profile"),
            "circuit_profile.json": lambda: self._read_from_host(record, "circuit_json_profile"),
            "heap_profile.pb.gz": _no_native_profile,
            "metrics.txt": lambda: self._read_from_host(record, "metrics"),
            "logs.txt": lambda: self._log(record),
            "stats.json": lambda: self._read_from_host(record, "stats?include_connector_errors=true"),
            "pipeline_config.json": lambda: _json(descriptor(record)),
            "system_config.json": lambda: _json(self._system()),
            "dataflow_graph.json": lambda: _json(self._dataflow(record)),
            "pipeline_events.json": lambda: _json(
                [event_to_wire(each, Selector.ALL) for each in self._control_plane.store.events(record.id)]
            ),
        }

    def _dataflow(self, record: PipelineRecord) -> dict[str, Any]:
        compiled = self._control_plane.programs.compile(record.source, with_dataflow=True)
        if compiled.program_info is None:
            raise Problem(
                ErrorCode.PROGRAM_NOT_COMPILED,
                f"The program of pipeline '{record.name}' does not compile and has no dataflow graph: see its program_error",
            )
        graph: dict[str, Any] = compiled.program_info["dataflow"]
        return graph

    def _read_from_host(self, record: PipelineRecord, tail: str) -> bytes:
        target = self._control_plane.target(record.name)
        try:
            response = self._control_plane.hosts.call(target.host, "GET", f"{target.path}/{tail}")
        except HostTimeout as error:
            raise errors.too_slow(record, str(error)) from error
        except HostUnreachable as error:
            raise self._control_plane.explain_broken_call(record.name, str(error)) from error
        if not response.is_success:
            raise problem_of(response)
        return response.content

    def _log(self, record: PipelineRecord) -> bytes:
        with self._control_plane.files.log(record).open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - LOG_BYTES))
            return file.read()

    def _system(self) -> dict[str, Any]:
        settings = self._control_plane.settings
        return {
            "version": platform_version(),
            "python": platform.python_version(),
            "system": platform.platform(),
            "cpus": os.cpu_count(),
            "deployer": settings.deployer,
            "master": settings.master,
            "driver_memory": settings.driver_memory,
            "database": self._control_plane.store.engine.url.get_backend_name(),
            "hosts": [{"kind": host.kind, "machine": host.machine} for host in self._control_plane.registry.live_hosts()],
        }


def _no_native_profile() -> NoReturn:
    raise SkippedPart(NO_NATIVE_PROFILER)


def _json(value: Any) -> bytes:
    return json.dumps(value, indent=1).encode()
