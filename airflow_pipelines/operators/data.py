"""Operators that push rows into a pipeline and query it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from airflow.sdk.exceptions import AirflowFailException

from airflow_pipelines.hooks.conditions import TokenCondition
from airflow_pipelines.hooks.pipeline import PushResult
from airflow_pipelines.operators import arguments
from airflow_pipelines.operators.base import PipelineOperator, WaitingPipelineOperator
from airflow_pipelines.operators.files import read_file, suffix_of, without_password
from airflow_pipelines.operators.query import QueryingOperator

if TYPE_CHECKING:
    from airflow.sdk import Context

ROWS_PER_REQUEST = 10_000
_UPDATE_FORMATS = ("raw", "insert_delete", "weighted", "debezium")
_FORMATS = {".csv": "csv", ".json": "json", ".jsonl": "json", ".ndjson": "json", ".parquet": "parquet"}


class IngestingOperator(WaitingPipelineOperator):
    """The base class of operators that push rows into a table and, with ``wait``, wait until they are processed.

    The rows are processed when the token is complete. Their durability then depends on the pipeline's fault tolerance. With
    ``exactly_once`` they survive a kill. With ``none`` and ``at_least_once`` they survive it from the next checkpoint on, which
    PipelineCompletionTokenSensor takes with ``checkpoint=True``.

    Rows are added once for each DAG run and map index: the pipeline remembers the pushes of a task for a week, as durably as the
    rows themselves. A retry (after a lost answer or a wait that took too long) or a cleared task finds them there, and the XCom
    says so (``already_there``). Rows that differ from the earlier ones are pushed. A pipeline whose storage was cleared has
    forgotten the pushes together with the rows.

    :param table: the table; an unquoted name is not case-sensitive
    :param once: True to skip rows that this task has pushed in this run before; False adds them again
    :param wait: True to wait until all rows are processed and delivered; otherwise use the token for that. In a transaction the
        rows are processed only after its commit, so do not wait there
    """

    template_fields: Sequence[str] = (*WaitingPipelineOperator.template_fields, "table")

    def __init__(self, *, table: str, wait: bool = False, once: bool = True, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.table = table
        self.wait = wait
        self.once = once

    def check_arguments(self) -> None:
        """See the base class."""
        super().check_arguments()
        self.table = arguments.text("table", self.table)

    def push(self, context: Context, parts: Iterable[tuple[bytes, Mapping[str, Any]]]) -> PushResult:
        """Push the requests of this task.

        :param context: the task's context
        :param parts: the body and the parameters of each request
        :returns: the token of the last request, which covers all, and True if all rows were there already
        """
        token, present = "", []
        for number, (body, params) in enumerate(parts):
            key = self._key(context, number, body, params)
            # Tokens count the input of the same endpoint, so the last one covers the earlier requests.
            pushed = self.hook.ingest(self.pipeline_name, self.table, body, params, key)
            token = pushed.token
            present.append(pushed.already_there)
        if any(present):
            self.log.info(
                "Table %s of pipeline %s has %s of %s parts of these rows already: this task has pushed them before, in this run",
                self.table,
                self.pipeline_name,
                sum(present),
                len(present),
            )
        return PushResult(token, all(present))

    def _key(self, context: Context, number: int, body: bytes, params: Mapping[str, Any]) -> str | None:
        """Return the idempotency key of one request: the same for the same rows of the same task in the same run, for every try."""
        ti: Any = context.get("ti")
        if ti is None or not self.once:
            return None
        task = [ti.dag_id, ti.run_id, ti.task_id, ti.map_index, number, sorted(params.items()), hashlib.sha256(body).hexdigest()]
        return f"airflow-{hashlib.sha256(json.dumps(task).encode()).hexdigest()}"

    def finish_push(self, context: Context, result: dict[str, Any]) -> Any:
        """Return the result of the push, at once or after the rows are processed.

        :param context: the task's context
        :param result: the XCom
        """
        if not self.wait:
            return result
        return self.wait_and_finish(context, TokenCondition(result["token"]), result=result)

    def finish(self, context: Context, outcome: dict[str, Any], **carried: Any) -> dict[str, Any]:
        """Return the result of the push."""
        result: dict[str, Any] = carried["result"]
        return result


class IngestOperator(IngestingOperator):
    """The operator that pushes rows into a table. See :class:`IngestingOperator` for their durability.

    XCom: ``{"pipeline", "table", "rows", "token", "already_there"}``; the completion token covers every row of this push.

    :param rows: the rows as dictionaries (or changes, see ``update_format``), or a pandas DataFrame with the table's columns
    :param update_format: the form of an element of ``rows``: ``raw``, a row to insert; ``insert_delete``, one of ``{"insert":
        row}``, ``{"delete": row}`` and ``{"update": row}``
    """

    template_fields: Sequence[str] = (*IngestingOperator.template_fields, "rows", "update_format")
    template_fields_renderers = {"rows": "json"}

    def __init__(self, *, rows: Any, update_format: str = "raw", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        arguments.refuse_when_parsed(arguments.choice, "update_format", update_format, _UPDATE_FORMATS)
        self.rows = rows
        self.update_format = update_format

    def check_arguments(self) -> None:
        """See the base class."""
        super().check_arguments()
        self.update_format = arguments.choice("update_format", self.update_format, _UPDATE_FORMATS)

    def act(self, context: Context) -> Any:
        """Push the rows, in requests of a bounded size."""
        rows = _records(arguments.json_value("rows", self.rows))
        if not rows:
            raise AirflowFailException(f"rows is empty: there are no rows to push into {self.table!r}")
        params = {"format": "json", "array": True, "update_format": self.update_format}
        starts = range(0, len(rows), ROWS_PER_REQUEST)
        bodies = (json.dumps(rows[start : start + ROWS_PER_REQUEST], default=_plain).encode() for start in starts)
        pushed = self.push(context, ((body, params) for body in bodies))
        result = {"pipeline": self.pipeline_name, "table": self.table, "rows": len(rows)}
        return self.finish_push(context, {**result, "token": pushed.token, "already_there": pushed.already_there})


class IngestFileOperator(IngestingOperator):
    """The operator that pushes a file into a table: CSV with a header line, JSON, JSON lines or Parquet, by the file's suffix.

    See :class:`IngestingOperator` for the durability of its rows.

    The file is sent in one request. For large files, or to resume from a checkpoint, give the table a connector that reads files.

    XCom: ``{"pipeline", "table", "token", "already_there"}``.

    :param path: the file: a path on this worker, or a URL that fsspec supports, such as ``s3://bucket/orders.csv``
    :param file_conn_id: the connection with the credentials for a URL: that of the provider of the store (type ``aws`` also without
        its provider), or any connection whose extra ``storage_options`` is an object for fsspec's file system. Without it the
        credentials are those of the worker's environment
    """

    template_fields: Sequence[str] = (*IngestingOperator.template_fields, "path", "file_conn_id")

    def __init__(self, *, path: str, file_conn_id: str | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.given = arguments.collect_given(file_conn_id=file_conn_id)
        self.path = path
        self.file_conn_id = file_conn_id

    def check_arguments(self) -> None:
        """See the base class."""
        super().check_arguments()
        self.path = arguments.text("path", self.path)
        for name in self.given:
            arguments.text(name, getattr(self, name))

    def act(self, context: Context) -> Any:
        """Push the file."""
        suffix = suffix_of(self.path)
        kind = _FORMATS.get(suffix)
        if kind is None:
            raise AirflowFailException(
                f"path: {without_password(self.path)}: unknown suffix {suffix!r}; known: {', '.join(_FORMATS)}"
            )
        content = read_file("path", self.path, self.file_conn_id)
        params: dict[str, Any] = {"format": kind}
        if kind == "csv":
            params["headers"] = True
        elif kind == "json":
            params |= {"update_format": "raw", "array": suffix == ".json"}
        pushed = self.push(context, [(content, params)])
        result = {"pipeline": self.pipeline_name, "table": self.table}
        return self.finish_push(context, {**result, "token": pushed.token, "already_there": pushed.already_there})


class CompletionTokenOperator(PipelineOperator):
    """The operator that makes a completion token for an input connector.

    The token completes when everything that the connector has received so far is processed and delivered.

    A connector that has not opened its source yet has received nothing, so its token is complete at once: to wait for the end of a
    file, use PipelineCompletionSensor. After a kill a connector reads the input after the checkpoint again.

    XCom: ``{"pipeline", "table", "connector", "token"}``.

    :param table: the table; an unquoted name is not case-sensitive
    :param connector: the connector's name
    """

    template_fields: Sequence[str] = (*PipelineOperator.template_fields, "table", "connector")

    def __init__(self, *, table: str, connector: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.table = table
        self.connector = connector

    def check_arguments(self) -> None:
        """See the base class."""
        super().check_arguments()
        self.table = arguments.text("table", self.table)
        self.connector = arguments.text("connector", self.connector)

    def act(self, context: Context) -> dict[str, Any]:
        """Make the token."""
        token = self.hook.completion_token(self.pipeline_name, self.table, self.connector)
        return {"pipeline": self.pipeline_name, "table": self.table, "connector": self.connector, "token": token}


class QueryPipelineOperator(QueryingOperator):
    """The operator that runs an ad-hoc query over the materialized tables and views of a running or paused pipeline.

    XCom: ``{"pipeline", "rows", "row_count", "truncated"}``. ``rows`` are dictionaries of JSON values; a decimal is a string, so
    that no digit is lost. At most ``limit`` rows are read, and ``truncated`` is True if there were more.

    :param query: a SELECT
    :param limit: the maximum number of rows to return
    """

    template_fields: Sequence[str] = (*QueryingOperator.template_fields, "query", "limit")
    template_ext: Sequence[str] = (".sql",)
    template_fields_renderers = {"query": "sql"}

    def __init__(self, *, query: str, limit: int | str = 1000, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.query = query
        self.limit = limit

    def check_arguments(self) -> None:
        """See the base class."""
        super().check_arguments()
        self.query = arguments.text("query", self.query)
        self.limit = arguments.whole_number("limit", self.limit, least=1)

    def act(self, context: Context) -> Any:
        """Run the query."""
        return self.ask(context, self.query, int(self.limit))

    def finish(self, context: Context, outcome: dict[str, Any], **carried: Any) -> dict[str, Any]:
        """Return the rows."""
        if outcome["truncated"]:
            self.log.warning("The query has more than %s rows; the others are left out", self.limit)
        rows = outcome["rows"]
        return {"pipeline": self.pipeline_name, "rows": rows, "row_count": len(rows), "truncated": outcome["truncated"]}


def _records(rows: Any) -> list[Any]:
    """Return the rows of a DataFrame, or the rows as they are."""
    if hasattr(rows, "to_dict") and hasattr(rows, "columns"):
        # Object columns give numbers and times as Python's own types, and a missing value as None.
        frame = rows.astype(object)
        return list(frame.where(frame.notna(), None).to_dict(orient="records"))
    if isinstance(rows, Mapping):
        return [rows] if rows else []
    return list(rows)


def _plain(value: Any) -> Any:
    """Convert a value that JSON does not know to the form that the ingress endpoint reads."""
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, datetime):
        return value.isoformat(sep=" ")
    if isinstance(value, (date, time)):
        return value.isoformat()
    if isinstance(value, (bytes, bytearray)):
        return list(value)
    raise TypeError(f"a {type(value).__name__} cannot be pushed as JSON: {value!r}")
