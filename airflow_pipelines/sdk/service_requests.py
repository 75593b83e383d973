"""The requests about the service itself, and the HTTP methods with which all requests are made."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Final

from airflow_pipelines.sdk.errors import PipelineAPIError, PipelineConnectionError, PipelineTimeoutError
from airflow_pipelines.sdk.stream_collecting import StreamProgramArguments, StreamProgramSource
from airflow_pipelines.sdk.wire import path_of

HEALTH_TIMEOUT_S: Final = 10.0
"""The maximum number of seconds to wait for the answer of a health check."""


class ServiceRequests(ABC):
    """The requests about the service, for a client that implements :meth:`request`."""

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
        :param idempotent: True if the call may be repeated when the service is busy or away (after 2, 4 and 8 seconds). Default:
            True for GET.
        :param outage_budget_s: seconds for which to retry while the service is away; default the client's, 0 for a single attempt
        :returns: text for ``text/plain`` and pictures in SVG, bytes for ``application/octet-stream``, None for an empty answer,
            else the JSON value
        :raises PipelineAPIError: when the service answers with an error
        :raises PipelineConnectionError: when the service cannot be reached
        :raises PipelineTimeoutError: when it does not answer in time
        """

    def get(self, path: str, **options: Any) -> Any:
        """Make a GET request to ``path``.

        :param path: path with percent-encoded parts
        :param options: as for :meth:`request`, and so are the result and the errors
        """
        return self.request("GET", path, **options)

    def post(self, path: str, **options: Any) -> Any:
        """Make a POST request to ``path``.

        :param path: path with percent-encoded parts
        :param options: as for :meth:`request`, and so are the result and the errors
        """
        return self.request("POST", path, **options)

    def put(self, path: str, **options: Any) -> Any:
        """Make a PUT request to ``path``.

        :param path: path with percent-encoded parts
        :param options: as for :meth:`request`, and so are the result and the errors
        """
        return self.request("PUT", path, **options)

    def patch(self, path: str, **options: Any) -> Any:
        """Make a PATCH request to ``path``.

        :param path: path with percent-encoded parts
        :param options: as for :meth:`request`, and so are the result and the errors
        """
        return self.request("PATCH", path, **options)

    def delete(self, path: str, **options: Any) -> Any:
        """Make a DELETE request to ``path``.

        :param path: path with percent-encoded parts
        :param options: as for :meth:`request`, and so are the result and the errors
        """
        return self.request("DELETE", path, **options)

    def get_config(self) -> dict[str, Any]:
        """Return the service's configuration: ``version``, ``edition``, ``revision`` and more."""
        config: dict[str, Any] = self.get(path_of("config"))
        return config

    def version(self) -> str:
        """Return the service's version."""
        return str(self.get_config()["version"])

    def is_healthy(self) -> bool:
        """Return True if the service answers and reports that it is healthy."""
        try:
            answer = self.request("GET", "/healthz", idempotent=False, timeout_s=min(self.timeout_s, HEALTH_TIMEOUT_S))
        except (PipelineAPIError, PipelineConnectionError, PipelineTimeoutError):
            return False
        return bool(answer == {"status": "healthy"})

    def cluster_health(self) -> dict[str, Any]:
        """Return the health of the service's parts: ``all_healthy, api, compiler, runner``.

        :returns: the report, also if a part is unhealthy (which the service answers with 503)
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
        """Return the changes of the health of the service's parts, newest first.

        :param selector: ``status``, or ``all`` for the parts' own messages too
        """
        events: list[dict[str, Any]] = self.get(path_of("cluster", "events"), params={"selector": selector})
        return events

    def get_cluster_event(self, event_id: str, selector: str = "status") -> dict[str, Any]:
        """Return one change of the health of the service's parts.

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
        :param ir: True to include the dataflow graph in the description
        :param runtime_version: the version to compile it with; None for the service's, which is the only one available
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
        """Return the API keys' names and roles, without the keys themselves."""
        keys: list[dict[str, Any]] = self.get(path_of("api_keys"))
        return keys

    def create_api_key(self, name: str, role: str = "write") -> str:
        """Create an API key.

        From the first key on, requests need one. So the first key is created on the service's machine, with
        ``airflow-pipelines keys create NAME`` or a client with its ``home``.

        :param name: the name of the key
        :param role: ``read``, or ``write`` for everything
        :returns: the key, which is shown only this once
        :raises PipelineAPIError: when there is one of that name, or the service is at a URL and has no key yet
        """
        return str(self.post(path_of("api_keys"), json={"name": name, "role": role})["api_key"])

    def delete_api_key(self, name: str) -> None:
        """Delete an API key.

        :param name: its name
        :raises PipelineAPIError: when there is none of that name
        """
        self.delete(path_of("api_keys", name))
