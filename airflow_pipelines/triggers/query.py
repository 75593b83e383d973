"""The trigger that queries a pipeline, and the JSON form of its rows in Airflow."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from airflow_pipelines.sdk.client import AsyncPipelineClient
from airflow_pipelines.triggers.request import RequestTrigger


class PipelineQueryTrigger(RequestTrigger):
    """The trigger that queries a pipeline. Its event has ``{"rows", "truncated"}`` as result.

    :param query: a SELECT
    :param limit: the maximum number of rows
    """

    def __init__(self, *, query: str, limit: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.query = query
        self.limit = limit

    @property
    def subject(self) -> str:
        """The query's pipeline, for messages."""
        return f"the answer to the query of pipeline {self.pipeline_name!r}"

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Return the class path and the arguments to make the trigger again."""
        path, arguments = super().serialize()
        return path, {**arguments, "query": self.query, "limit": self.limit}

    async def ask(self, client: AsyncPipelineClient) -> dict[str, Any]:
        """Run the query."""
        return first_rows(await client.query(self.pipeline_name, self.query, self.limit + 1), self.limit)


def first_rows(rows: list[Mapping[str, Any]], limit: int) -> dict[str, Any]:
    """Return the first rows of an answer as ``{"rows", "truncated"}``, in JSON values.

    :param rows: the rows, one more than ``limit`` if there are more
    :param limit: the maximum number of rows to keep
    """
    return {"rows": [_json_value(row) for row in rows[:limit]], "truncated": len(rows) > limit}


def _json_value(value: Any) -> Any:
    """Convert a query's value to JSON without loss."""
    if isinstance(value, Mapping):
        return {str(name): _json_value(inner) for name, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_json_value(inner) for inner in value]
    return value if value is None or isinstance(value, (str, int, float, bool)) else str(value)
