"""A stand-in for a service with one pipeline that is followed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import httpx
import pyarrow as pa

from airflow_pipelines.connectors.followed_changes import AnswerHead
from airflow_pipelines.contract.error_codes import ErrorCode
from airflow_pipelines.rows.schema import RelationSchema
from airflow_pipelines.rows.zsets import WEIGHT

Row = Sequence[Any]
KEY = "key-of-the-service"


class FollowedView:
    """Answers what a service answers for a view whose changes are known from a step on.

    :param schema: of the view
    """

    def __init__(self, schema: RelationSchema) -> None:
        self.schema = schema
        self.run = "a"
        self.begin = 0
        self.steps: list[list[tuple[Row, int]]] = []
        self.is_there = True
        self.most_steps = 1000
        self.key = ""
        self.asked: list[str | None] = []

    def step(self, *changes: tuple[Row, int]) -> None:
        """Add a step: rows with weights, those that go first."""
        self.steps.append(sorted(changes, key=lambda change: change[1]))

    def forget(self) -> None:
        """Know nothing of the steps before any more."""
        self.begin = len(self.steps)

    def client(self, api_key: str) -> httpx.Client:
        """In the place of a client of the real service."""
        headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        return httpx.Client(transport=httpx.MockTransport(self.answer), headers=headers)

    def answer(self, request: httpx.Request) -> httpx.Response:
        if not self.is_there:
            raise httpx.ConnectError("nobody listens")
        if self.key and request.headers.get("Authorization") != f"Bearer {self.key}":
            return httpx.Response(401, json={"message": "No key", "error_code": "Unauthorized", "details": {}})
        if request.url.path != "/v0/pipelines/shop/changes/v":
            return httpx.Response(
                404,
                json={
                    "message": "There is no view or table w; views: v; tables: t.",
                    "error_code": ErrorCode.UNKNOWN_OUTPUT_STREAM,
                },
            )
        after = request.url.params.get("after")
        self.asked.append(after)
        run, _, step = (after or "").rpartition(":")
        number = int(step) if run == self.run else None
        if number is None or number < self.begin:
            return self._of(len(self.steps), self._contents(), whole=True, behind=0)
        until = min(len(self.steps), number + self.most_steps)
        changes = [change for each in self.steps[number:until] for change in each]
        return self._of(until, changes, whole=False, behind=sum(map(len, self.steps[until:])))

    def _contents(self) -> list[tuple[Row, int]]:
        rows: list[Row] = []
        for changes in self.steps:
            for row, weight in changes:
                if weight > 0:
                    rows.append(row)
                else:
                    rows.remove(row)
        return [(row, 1) for row in rows]

    def _of(self, until: int, changes: list[tuple[Row, int]], *, whole: bool, behind: int) -> httpx.Response:
        types = {column.name: str(column.type) for column in self.schema.columns}
        head = AnswerHead(f"{self.run}:{until}", whole, len(changes), behind, types)
        fields = [*(pa.field(field.name, field.type) for field in self.schema.arrow), pa.field(WEIGHT, pa.int64())]
        schema = pa.schema(fields, metadata=head.to_metadata())
        columns = [pa.array([row[at] for row, _ in changes], field.type) for at, field in enumerate(self.schema.arrow)]
        table = pa.Table.from_arrays([*columns, pa.array([weight for _, weight in changes], pa.int64())], schema=schema)
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, schema) as writer:
            writer.write_table(table, max_chunksize=4)
        return httpx.Response(200, content=sink.getvalue().to_pybytes())
