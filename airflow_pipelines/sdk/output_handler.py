"""The following of a view's changes in a separate thread."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from airflow_pipelines.sdk.client import PipelineClient
from airflow_pipelines.sdk.errors import PipelineConnectionError, PipelineFailedError, PipelinesError, PipelineTimeoutError
from airflow_pipelines.sdk.transport import interrupt
from airflow_pipelines.sdk.wire import lines_of, path_of

if TYPE_CHECKING:
    import httpx
    import pandas

logger = logging.getLogger(__name__)

SILENCE_S = 60.0
"""The number of seconds of silence after which a stream is dead, since the service sends an empty chunk every few seconds."""

ENDING_S = 2.0
"""The number of seconds to wait, after the end of a stream, for its pipeline to stop; the stream ends a moment earlier."""

_DOWN = frozenset({"Suspended", "Stopping", "Stopped"})
_INTEGERS = frozenset({"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER"})
_FLOATS = frozenset({"REAL", "DOUBLE", "FLOAT"})


class OutputHandler:
    """A collector of the changes of one view of a running or paused pipeline, from its start until the pipeline stops.

    :param client: the client to reach the service with
    :param pipeline_name: the pipeline
    :param view_name: the view, or a table. Unquoted names fold to lower case; ``'"Name"'`` is taken as it is.
    :param on_chunk: a function to call with each chunk and its sequence number instead of collecting; see
        :meth:`Pipeline.foreach_chunk`
    """

    def __init__(
        self,
        client: PipelineClient,
        pipeline_name: str,
        view_name: str,
        *,
        on_chunk: Callable[[pandas.DataFrame, int], None] | None = None,
    ) -> None:
        self.client = client
        self.pipeline_name = pipeline_name
        self.view_name = view_name
        self.error: Exception | None = None
        """The error that ended the following; None if it ended with the stream."""
        self._on_chunk = on_chunk
        self._types: dict[str, str] = {}
        self._rows: list[dict[str, Any]] = []
        self._lock = threading.Lock()
        self._attached = threading.Event()
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._response: httpx.Response | None = None

    def start(self) -> None:
        """Start to follow, and return once no later change can be missed.

        :raises RuntimeError: when the handler was started before
        :raises PipelineAPIError: when there is no such view, or the pipeline has no host
        :raises PipelineTimeoutError: when the pipeline does not answer in time
        """
        if self._thread is not None:
            raise RuntimeError(f"the handler of view {self.view_name!r} was started before")
        self._types = self._column_types()
        name = f"listen-{self.pipeline_name}-{self.view_name}"
        self._thread = threading.Thread(target=self._follow, name=name, daemon=True)
        self._thread.start()
        if not self._attached.wait(self.client.timeout_s):
            self.stop(0)
            raise PipelineTimeoutError(f"view {self.view_name!r} of pipeline {self.pipeline_name!r} sent no first chunk in time")
        if self.error is not None:
            raise self.error

    def to_dict(self, clear_buffer: bool = True) -> list[dict[str, Any]]:
        """Return the changes collected so far.

        :param clear_buffer: True to discard them afterwards
        :returns: one dictionary per change: the view's columns and ``insert_delete``, which is 1 for an insert and -1 for a delete
        :raises PipelinesError: when no change is left and none can follow, because the stream broke off or the pipeline failed
        """
        with self._lock:
            rows = list(self._rows)
            if clear_buffer:
                self._rows.clear()
        if not rows and self.error is not None:
            raise self.error
        return rows

    def to_pandas(self, clear_buffer: bool = True) -> pandas.DataFrame:
        """Return the changes collected so far as a DataFrame.

        :param clear_buffer: True to discard them afterwards
        :returns: the view's columns and ``insert_delete``. Integers with NULLs have pandas' nullable types; DECIMAL stays
            ``Decimal``.
        :raises PipelinesError: as for :meth:`to_dict`
        """
        return self._frame(self.to_dict(clear_buffer))

    @property
    def is_alive(self) -> bool:
        """True while more changes may arrive."""
        return self._thread is not None and self._thread.is_alive()

    def stop(self, timeout_s: float | None = 10.0) -> None:
        """Stop following. The collected changes stay readable.

        :param timeout_s: seconds to wait for the thread to end
        """
        with self._lock:
            self._stopping.set()
            response = self._response
        if response is not None:
            interrupt(response)
        self.join(timeout_s)

    def join(self, timeout_s: float | None = None) -> bool:
        """Wait until the stream ends, as it does when the pipeline stops.

        :param timeout_s: maximum number of seconds to wait; None waits without limit
        :returns: True if it has ended
        """
        thread = self._thread
        if thread is None or thread is threading.current_thread():
            return True
        thread.join(timeout_s)
        return not thread.is_alive()

    def _column_types(self) -> dict[str, str]:
        """Return the SQL types of the view's columns, which are needed to parse decimals and to build an empty frame."""
        descriptor = self.client.get(path_of("pipelines", self.pipeline_name), params={"selector": "all"})
        schema = (descriptor.get("program_info") or {}).get("schema") or {}
        quoted = self.view_name.startswith('"')
        wanted = self.view_name[1:-1].replace('""', '"') if quoted else self.view_name.lower()
        for relation in [*(schema.get("outputs") or []), *(schema.get("inputs") or [])]:
            if relation["name"] == wanted:
                return {field["name"]: field["columntype"]["type"] for field in relation["fields"]}
        return {}

    def _follow(self) -> None:
        path = path_of("pipelines", self.pipeline_name, "egress", self.view_name)
        params = {"format": "json", "array": True, "backpressure": True}
        try:
            with self.client.stream("POST", path, params=params, read_timeout_s=SILENCE_S) as response:
                with self._lock:
                    self._response = response
                for line in lines_of(response):
                    if self._stopping.is_set():
                        return
                    if line.strip():
                        self._take(json.loads(line, parse_float=Decimal))
                    self._attached.set()
            self._handle_end(None)
        except (PipelineConnectionError, PipelineTimeoutError) as error:
            self._handle_end(error)
        except Exception as error:  # noqa: BLE001 - a thread's error is kept for to_dict(), which raises it
            self._fail(error)
        finally:
            with self._lock:
                self._response = None
            self._attached.set()

    def _fail(self, error: Exception) -> None:
        self.error = error
        if self._attached.is_set():
            logger.error("Following view %r of pipeline %r broke off", self.view_name, self.pipeline_name, exc_info=error)

    def _handle_end(self, broken: Exception | None) -> None:
        """Handle the end of the stream; only an end that nobody asked for is an error.

        :param broken: the error that broke the stream off; None if it ended properly
        """
        deadline = time.monotonic() + ENDING_S
        while not self._stopping.is_set():
            descriptor = self._descriptor()
            if descriptor is None:
                break
            if descriptor["deployment_status"] in _DOWN:
                # A host that is taken down by force cuts its streams off, which is no error by itself.
                error = descriptor.get("deployment_error")
                if error:
                    message = f"pipeline {self.pipeline_name!r} stopped with an error: {error.get('message')}"
                    self._fail(PipelineFailedError(message, error))
                return
            if time.monotonic() > deadline:
                break
            self._stopping.wait(0.1)
        if broken is not None and not self._stopping.is_set():
            self._fail(broken)

    def _descriptor(self) -> dict[str, Any] | None:
        try:
            path = path_of("pipelines", self.pipeline_name)
            descriptor: dict[str, Any] = self.client.get(path, params={"selector": "status"}, idempotent=False)
        except PipelinesError:
            return None
        return descriptor

    def _take(self, chunk: Mapping[str, Any]) -> None:
        rows = [self._row(change) for change in chunk.get("json_data") or []]
        if not rows:
            return
        if self._on_chunk is not None:
            self._on_chunk(self._frame(rows), int(chunk["sequence_number"]))
            return
        with self._lock:
            self._rows.extend(rows)

    def _row(self, change: Mapping[str, Any]) -> dict[str, Any]:
        kind = "insert" if "insert" in change else "delete"
        row = dict(change[kind])
        for name, value in row.items():
            if isinstance(value, str | int) and self._types.get(name) == "DECIMAL":
                row[name] = Decimal(value)
        row["insert_delete"] = 1 if kind == "insert" else -1
        return row

    def _frame(self, rows: list[dict[str, Any]]) -> pandas.DataFrame:
        import pandas

        columns = [*(self._types or (name for name in (rows[0] if rows else {}) if name != "insert_delete")), "insert_delete"]
        frame = pandas.DataFrame(rows, columns=columns)
        for name, kind in self._types.items():
            has_nulls = bool(frame[name].isna().any())
            if kind in _INTEGERS:
                frame[name] = frame[name].astype("Int64" if has_nulls else "int64")
            elif kind in _FLOATS:
                frame[name] = frame[name].astype("float64")
            elif kind == "BOOLEAN":
                frame[name] = frame[name].astype("boolean" if has_nulls else "bool")
            elif kind == "TIMESTAMP":
                frame[name] = pandas.to_datetime(frame[name], format="ISO8601")
        frame["insert_delete"] = frame["insert_delete"].astype("int64")
        return frame
