"""The changes of a relation since a place, for readers that want each change exactly once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

import pyarrow as pa
from fastapi import APIRouter, Query, Request
from fastapi.responses import Response, StreamingResponse
from pyspark.sql import SparkSession

from airflow_pipelines.connectors.followed_changes import AnswerHead
from airflow_pipelines.contract.error_codes import ErrorCode
from airflow_pipelines.contract.problems import Problem
from airflow_pipelines.engine.snapshot import Snapshot
from airflow_pipelines.engine.spark.intervals import format_intervals
from airflow_pipelines.engine.spark.result_stream import stream_tables
from airflow_pipelines.engine.spark.schemas import spark_schema
from airflow_pipelines.host.api.routers.common import Runner, check_contents, listenable, wait_for_disconnect
from airflow_pipelines.host.outputs.change_log import Place, Since
from airflow_pipelines.host.outputs.step_changes import StepChanges
from airflow_pipelines.host.queries import queries
from airflow_pipelines.host.queries.rendering import as_arrow
from airflow_pipelines.host.steps.live import LivePipeline
from airflow_pipelines.rows.schema import RelationSchema
from airflow_pipelines.rows.zsets import WEIGHT

router = APIRouter(prefix="/deployments/{deployment_id}")
MAX_WAIT_MS = 30_000


@router.get("/changes/{relation}")
async def changes(
    request: Request,
    runner: Runner,
    relation: str,
    after: str | None = None,
    wait_ms: Annotated[int, Query(ge=0, le=MAX_WAIT_MS)] = 0,
) -> Response:
    """Return the changes from a place up to a newer one, as an Arrow IPC stream that names the newer place.

    Return the newest contents if no place is given, or if the changes since then are no longer known.
    """
    live = runner.requests.serving()
    name = listenable(live, relation)
    check_contents(live, name, "its changes cannot be followed")
    logs = live.endpoints.outputs.change_logs
    step = None if after is None else logs.step_of(_place(after))
    since = None if step is None else await logs.wait_for_changes(name, step, wait_ms / 1000)
    if since is not None and not since.steps:
        nothing = _render(_Answer(live, name).head(since.until, whole=False), iter(()))
        return Response(b"".join(nothing), media_type="application/octet-stream")
    reply = await runner.queries.run(
        lambda query: queries.QueryAnswer(None, _respond(live, name, since, query)), lambda: wait_for_disconnect(request)
    )
    return StreamingResponse(reply.parts, media_type="application/octet-stream")


def _place(text: str) -> Place:
    try:
        return Place.read(text)
    except ValueError as error:
        raise Problem(ErrorCode.INVALID_PARAM, f"'after' is what an earlier answer said: {error}.") from error


def _respond(live: LivePipeline, name: str, since: Since | None, query: queries.Query) -> Iterator[bytes]:
    answer = _Answer(live, name)
    if since is not None:
        rows = sum(each.delta.rows for each in since.steps)
        return _render(answer.head(since.until, whole=False, rows=rows, behind=since.behind), answer.stream_changes(since))
    # The log begins before the contents are read, so that no change is missed between the two.
    live.endpoints.outputs.change_logs.follow(name)
    snapshot = live.circuit.snapshot
    trace = snapshot.traces.get(name)
    head = answer.head(snapshot.step, whole=True, rows=0 if trace is None else trace.rows)
    return _render(head, answer.contents(snapshot, query))


@dataclass(frozen=True, slots=True)
class _Answer:
    """The answer for one relation."""

    live: LivePipeline
    name: str

    @property
    def schema(self) -> RelationSchema:
        return self.live.program.schemas[self.name]

    def head(self, until: int, *, whole: bool, rows: int = 0, behind: int = 0) -> pa.Schema:
        """Return the columns of the answer, with the answer's description as metadata."""
        kinds = {column.name: str(column.type) for column in self.schema.columns}
        head = AnswerHead(str(self.live.endpoints.outputs.change_logs.place(until)), whole, rows, behind, kinds)
        columns = format_intervals(self.schema.arrow.empty_table(), spark_schema(self.schema)).schema
        fields = [*(pa.field(field.name, field.type) for field in columns), pa.field(WEIGHT, pa.int64())]
        return pa.schema(fields, metadata=head.to_metadata())

    def stream_changes(self, since: Since) -> Iterator[pa.Table]:
        """Yield the changes of the steps, in order."""
        session: SparkSession = self.live.sessions.large
        for each in since.steps:
            # The epoch matters to outputs only.
            part = StepChanges(each.step, 0, each.delta, self.schema.column_names)
            yield from part.in_order(session, ()).tables()

    def contents(self, snapshot: Snapshot, query: queries.Query) -> Iterator[pa.Table]:
        """Yield the rows of a snapshot, whose files are kept as long as the snapshot is."""
        frame = self.live.circuit.relation(self.name, snapshot)
        for table in stream_tables(frame, query.connection):
            rows = format_intervals(table, frame.schema)
            yield rows.append_column(WEIGHT, pa.repeat(pa.scalar(1, pa.int64()), rows.num_rows))


def _render(head: pa.Schema, tables: Iterator[pa.Table]) -> Iterator[bytes]:
    def with_head() -> Iterator[pa.Table]:
        yield head.empty_table()
        for table in tables:
            columns = [
                table[field.name] if table[field.name].type == field.type else table[field.name].cast(field.type) for field in head
            ]
            yield pa.Table.from_arrays(columns, schema=head)

    return as_arrow(with_head())
