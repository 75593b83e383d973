"""Ad-hoc queries, the following of views, logs and events."""

from __future__ import annotations

import io
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow_pipelines.contract.problems import QUERY_FAILED_LINE
from airflow_pipelines.sdk.output_handler import OutputHandler
from airflow_pipelines.sdk.pipelines.inputs import PipelineInputs
from airflow_pipelines.sdk.query_rows import QueryRows, query_failed, query_request
from airflow_pipelines.sdk.wire import lines_of

if TYPE_CHECKING:
    import httpx
    import pandas
    import pyarrow


class PipelineQueries(PipelineInputs):
    """The methods that read from a pipeline. Queries are SQL over materialized tables and views and see the state of one step."""

    def query(self, query: str) -> Generator[Mapping[str, Any], None, None]:
        """Run a query and yield its rows. Lazy: no request is made before the first row is taken.

        :param query: a SELECT
        :returns: a generator of rows as dictionaries; numbers with a fraction are ``Decimal``, so that nothing is rounded
        :raises PipelineAPIError: when the pipeline is neither running nor paused, the query is invalid or reads a relation that is
            not materialized, or fails while it runs
        """
        with self._answer(query, "json") as response:
            rows = QueryRows(response)
            for line in lines_of(response):
                row = rows.row(line)
                if row is not None:
                    yield row

    def query_tabular(self, query: str) -> Generator[str, None, None]:
        """Run a query and yield its result as a text table. Lazy, as :meth:`query`.

        :param query: a SELECT
        :returns: a generator of the text's lines with their line ends; concatenated they are the table
        :raises PipelineAPIError: as for :meth:`query`
        """
        with self._answer(query, "text") as response:
            for line in lines_of(response):
                text = line.decode()
                if text.startswith(QUERY_FAILED_LINE):
                    raise query_failed(text.removeprefix(QUERY_FAILED_LINE))
                yield text + "\n"

    def query_parquet(self, query: str, path: str) -> None:
        """Run a query and save its result as a Parquet file, whole or not at all.

        :param query: a SELECT
        :param path: the file; ``.parquet`` is appended if its name has another suffix. An existing file is replaced.
        :raises PipelineAPIError: as for :meth:`query`
        :raises OSError: when the file cannot be written
        """
        target = Path(path if path.endswith(".parquet") else f"{path}.parquet")
        aside = target.with_name(f".{target.name}.part")
        try:
            with (
                self._answer(query, "parquet") as response,
                aside.open("wb") as file,
            ):
                for chunk in response.iter_bytes():
                    file.write(chunk)
            aside.replace(target)
        finally:
            aside.unlink(missing_ok=True)

    def query_arrow(self, query: str) -> Generator[pyarrow.RecordBatch, None, None]:
        """Run a query and yield its result as Arrow record batches. Lazy, as :meth:`query`.

        :param query: a SELECT
        :returns: a generator of record batches, all of one schema
        :raises PipelineAPIError: as for :meth:`query`
        """
        import pyarrow.ipc

        with self._answer(query, "arrow_ipc") as response:
            yield from pyarrow.ipc.open_stream(_Body(response.iter_bytes()))

    def query_arrow_dicts(self, query: str) -> Generator[Mapping[str, Any], None, None]:
        """Run a query and yield its rows with Arrow's types. Lazy, as :meth:`query`.

        :param query: a SELECT
        :returns: a generator of rows as dictionaries
        :raises PipelineAPIError: as for :meth:`query`
        """
        from airflow_pipelines.rows.python_values import python_rows  # Arrow is slow to import

        for batch in self.query_arrow(query):
            yield from (dict(zip(batch.schema.names, row, strict=True)) for row in python_rows(batch))

    def query_hash(self, query: str) -> str:
        """Run a query and return a hash of its result, to detect changes without reading it.

        :param query: a SELECT with a deterministic result
        :returns: upper-case hexadecimal SHA-256 over the columns and rows, independent of the order of the rows
        :raises PipelineAPIError: as for :meth:`query`
        """
        method, options = query_request(self.name, query, "hash")
        return str(self.client.request(method, self._path("query"), idempotent=True, **options)).strip()

    def execute(self, query: str, wait: bool = True, timeout_s: float | None = None) -> None:
        """Run an INSERT, DELETE or SELECT to its end and discard its result.

        An INSERT or DELETE blocks while the pipeline is paused.

        :param query: the SQL text, of any length
        :param wait: True to wait until the inserted or deleted rows are processed by all views or, in a transaction, collected by
            it
        :param timeout_s: the maximum number of seconds to wait for that; None waits without limit
        :raises PipelineAPIError: when the pipeline has no host, or the text is invalid
        :raises PipelineFailedError: when the pipeline stops with an error meanwhile, for instance one that the rows cause
        :raises PipelineTimeoutError: when time is up
        """
        for _ in self.query_tabular(query):
            pass
        if wait:
            self._wait_for_counted_input(timeout_s)

    def listen(self, view_name: str) -> OutputHandler:
        """Follow the changes of a view from now on. To see all of them, listen before a paused pipeline is resumed.

        :param view_name: the view, or a table
        :returns: a started handler that collects the changes; it ends when the pipeline stops
        :raises PipelineAPIError: when there is no such view, or the pipeline has no host
        """
        handler = OutputHandler(self.client, self.name, view_name)
        handler.start()
        self._listeners.append(handler)
        return handler

    def foreach_chunk(self, view_name: str, callback: Callable[[pandas.DataFrame, int], None]) -> None:
        """Call a function with each chunk of changes of a view, in a separate thread.

        :param view_name: the view, or a table
        :param callback: a function of the chunk (the view's columns and ``insert_delete``, +1 or -1) and its sequence number, which
            grows. A slow callback slows the pipeline down. An error of the callback ends the following, and is logged.
        :raises PipelineAPIError: when there is no such view, or the pipeline has no host
        """
        handler = OutputHandler(self.client, self.name, view_name, on_chunk=callback)
        handler.start()
        self._listeners.append(handler)

    def logs(self, *, from_end: bool = False) -> Generator[str, None, None]:
        """Yield the pipeline's log, from its beginning and on as it grows. Close the generator to stop following.

        :param from_end: True to skip the present contents of the log. The end is determined when the first line is taken; that line
            comes at once and marks the beginning of the log
        :returns: a generator of lines; it ends when the pipeline is deleted
        :raises PipelineAPIError: when there is no such pipeline
        """
        params = {"from_end": True} if from_end else None
        with self.client.stream("GET", self._path("logs"), params=params) as response:
            for line in lines_of(response):
                yield line.decode("utf-8", errors="replace")

    def events(self, *, selector: str = "status") -> list[dict[str, Any]]:
        """Return the changes of the pipeline's statuses, one event for each.

        :param selector: ``status`` for the statuses only, ``all`` for details too
        :returns: the events, newest first
        :raises PipelineAPIError: when there is no such pipeline
        """
        events: list[dict[str, Any]] = self.client.get(self._path("events"), params={"selector": selector})
        return events

    def event(self, event_id: str, *, selector: str = "status") -> dict[str, Any]:
        """Return one event.

        :param event_id: its UUID, or ``latest``
        :param selector: as for :meth:`events`
        :returns: the event
        :raises PipelineAPIError: when there is no such event
        """
        event: dict[str, Any] = self.client.get(self._path("events", event_id), params={"selector": selector})
        return event

    def _answer(self, query: str, result_format: str) -> AbstractContextManager[httpx.Response]:
        """Return the streamed answer to an ad-hoc request."""
        method, options = query_request(self.name, query, result_format)
        return self.client.stream(method, self._path("query"), **options)


class _Body(io.RawIOBase):
    """The parts of an answer as a file that is read while they arrive."""

    def __init__(self, parts: Iterator[bytes]) -> None:
        self._parts = parts
        self._rest = b""

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer from the next part, and return the number of bytes; 0 at the end."""
        while not self._rest:
            part = next(self._parts, None)
            if part is None:
                return 0
            self._rest = part
        taken = self._rest[: len(buffer)]
        buffer[: len(taken)] = taken
        self._rest = self._rest[len(taken) :]
        return len(taken)
