"""What can be asked of the service itself, and the verbs with which everything is asked of it."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Final

from airflow_pipelines.sdk.errors import PipelineAPIError, PipelineConnectionError, PipelineTimeoutError
from airflow_pipelines.sdk.stream_collecting import StreamProgramArguments, StreamProgramSource
from airflow_pipelines.sdk.wire import path_of

HEALTH_TIMEOUT_S: Final = 10.0
"""Seconds to wait at most to be told that the service is healthy."""


class ServiceRequests(ABC):
    """Requests about the service, for a client that says how a request is made."""

    timeout_s: float

    @abstractmethod
    def request(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, Any] | None = None,
        json: Any = None,
        content: bytes | str | None = None,
        headers: Mapping[str, str] | None = None,
        timeout_s: float | None = None,
        idempotent: bool | None = None,
        outage_budget_s: float | None = None,
    ) -> Any:
        """Make one call of the contract.

        :param method: HTTP method
        :param path: path with percent-encoded parts, such as ``/v0/pipelines``; see
            :func:`~airflow_pipelines.sdk.wire.path_of`
        :param params: query parameters; None values are left out
        :param json: body as a JSON value. A POST, PUT or PATCH without any body sends ``null``.
        :param content: body as is, instead of ``json``
        :param headers: extra headers
        :param timeout_s: seconds to wait for the answer; default the client's
        :param idempotent: whether the call may be repeated when the service is busy or away (after 2, 4 and 8 seconds). Default:
            GETs are.
        :param outage_budget_s: seconds for which to try again while the service is away; default the client's, 0 for one try
        :returns: text for ``text/plain`` and pictures in SVG, bytes for ``application/octet-stream``, None for an empty answer,
            else the JSON value
        :raises PipelineAPIError: when the service answers with an error
        :raises PipelineConnectionError: when the service cannot be reached
        :raises PipelineTimeoutError: when it does not answer in time
        """

    def get(self, path: str, **options: Any) -> Any:
        """GET ``path``.

        :param path: path with percent-encoded parts
        :param options: as for :meth:`request`, and so are the result and the errors
        """
        return self.request("GET", path, **options)

    def post(self, path: str, **options: Any) -> Any:
        """POST to ``path``.

        :param path: path with percent-encoded parts
        :param options: as for :meth:`request`, and so are the result and the errors
        """
        return self.request("POST", path, **options)

    def put(self, path: str, **options: Any) -> Any:
        """PUT to ``path``.

        :param path: path with percent-encoded parts
        :param options: as for :meth:`request`, and so are the result and the errors
        """
        return self.request("PUT", path, **options)

    def patch(self, path: str, **options: Any) -> Any:
        """PATCH ``path``.

        :param path: path with percent-encoded parts
        :param options: as for :meth:`request`, and so are the result and the errors
        """
        return self.request("PATCH", path, **options)

    def delete(self, path: str, **options: Any) -> Any:
        """DELETE ``path``.

        :param path: path with percent-encoded parts
        :param options: as for :meth:`request`, and so are the result and the errors
        """
        return self.request("DELETE", path, **options)

    def get_config(self) -> dict[str, Any]:
        """The service's configuration: ``version``, ``edition``, ``revision`` and more."""
        config: dict[str, Any] = self.get(path_of("config"))
        return config

    def version(self) -> str:
        """The service's version."""
        return str(self.get_config()["version"])

    def is_healthy(self) -> bool:
        """Whether the service answers and says that it is healthy."""
        try:
            answer = self.request("GET", "/healthz", idempotent=False, timeout_s=min(self.timeout_s, HEALTH_TIMEOUT_S))
        except (PipelineAPIError, PipelineConnectionError, PipelineTimeoutError):
            return False
        return bool(answer == {"status": "healthy"})

    def cluster_health(self) -> dict[str, Any]:
        """The health of the service's parts: ``all_healthy, api, compiler, runner``.

        :returns: the report, also when a part is unhealthy (which the service answers with 503)
        """
        try:
            answer: Any = self.request("GET", path_of("cluster_healthz"), idempotent=False)
        except PipelineAPIError as error:
            if error.status_code != 503 or not isinstance(error.details, dict):
                raise
            answer = error.details
        health: dict[str, Any] = answer
        return health

    def get_cluster_events(self, selector: str = "status") -> list[dict[str, Any]]:
        """Changes of the health of the service's parts, newest first.

        :param selector: ``status``, or ``all`` for the parts' own messages too
        """
        events: list[dict[str, Any]] = self.get(path_of("cluster", "events"), params={"selector": selector})
        return events

    def get_cluster_event(self, event_id: str, selector: str = "status") -> dict[str, Any]:
        """One change of the health of the service's parts.

        :param event_id: its ``id``, or ``latest``
        :param selector: as for :meth:`get_cluster_events`
        :raises PipelineAPIError: when there is no such event (any more)
        """
        event: dict[str, Any] = self.get(path_of("cluster", "events", event_id), params={"selector": selector})
        return event

    def validate_program(
        self,
        program_code: str,
        *,
        ir: bool = False,
        runtime_version: str | None = None,
        udf_python: str = "",
        stream_program: StreamProgramSource | None = None,
        stream_files: Sequence[str | os.PathLike[str]] = (),
        stream_arguments: Sequence[str] | None = None,
    ) -> dict[str, Any]:
        """Compile a program that belongs to no pipeline.

        :param program_code: the SQL text
        :param ir: whether the description has the dataflow graph
        :param runtime_version: the version to compile it with; None for the service's, which is the only one that there is
        :param udf_python: the text of a Python module with the program's functions
        :param stream_program: a stream program, see :class:`~airflow_pipelines.sdk.pipeline_builder.PipelineBuilder`
        :param stream_files: other files of the stream program
        :param stream_arguments: its command line
        :returns: an object with one key: ``Success`` with the program's description, ``SqlError`` with the compiler's messages and
            their places, or ``SystemError`` when the compiler itself failed
        :raises PipelineAPIError: when there is no compiler, or no such version
        """
        fields = {"program_code": program_code, "ir": ir, "runtime_version": runtime_version, "udf_python": udf_python}
        streams = StreamProgramArguments.collect(stream_program, stream_files, stream_arguments)
        answer: dict[str, Any] = self.post(path_of("validate_program"), json=fields | streams.to_wire())
        return answer

    def api_keys(self) -> list[dict[str, Any]]:
        """The API keys' names and roles, without the keys themselves."""
        keys: list[dict[str, Any]] = self.get(path_of("api_keys"))
        return keys

    def create_api_key(self, name: str, role: str = "write") -> str:
        """Make an API key. From the first one on, requests need one; so that one is made on the service's machine, by
        ``airflow-pipelines keys create NAME`` or a client with its ``home``.

        :param name: what it is called
        :param role: ``read``, or ``write`` for everything
        :returns: the key, which is shown this once
        :raises PipelineAPIError: when there is one of that name, or the service at an address has none yet
        """
        return str(self.post(path_of("api_keys"), json={"name": name, "role": role})["api_key"])

    def delete_api_key(self, name: str) -> None:
        """Take an API key away.

        :param name: its name
        :raises PipelineAPIError: when there is none of that name
        """
        self.delete(path_of("api_keys", name))
