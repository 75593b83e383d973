"""The trigger that asks a pipeline a query, and what rows look like on their way through Airflow."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from typing import Any

from airflow.sdk.exceptions import AirflowNotFoundException
from airflow.triggers.base import BaseTrigger, TriggerEvent

from airflow_pipelines.errors import PipelineConnectionError, PipelinesError
from airflow_pipelines.hooks.conditions import is_transient
from airflow_pipelines.hooks.pipeline import PipelineHook
from airflow_pipelines.hooks.waiting import jittered, spread
from airflow_pipelines.pins import SetupError
from airflow_pipelines.triggers.pipeline import WaitOutcome


class PipelineQueryTrigger(BaseTrigger):
    """Asks a pipeline a query and takes its first rows. It only reads, so a triggerer that restarts asks again.

    It sleeps before, because an event that comes while the worker is still leaving the deferred task can make Airflow fail the
    task. A service that is away, busy or restarting is asked again, for a while.

    :param pipeline_name: the pipeline
    :param query: a SELECT
    :param limit: rows to take at most
    :param pipeline_conn_id: the connection's id; the connection itself is read in the triggerer
    :param poll_interval_s: seconds between two tries; up to a fifth is added at random
    :param first_delay_s: seconds before the first one
    :param deadline: seconds since the epoch after which the query is given up
    :param outage_budget_s: seconds for which the service may be away
    """

    def __init__(
        self,
        *,
        pipeline_name: str,
        query: str,
        limit: int,
        pipeline_conn_id: str,
        poll_interval_s: float,
        first_delay_s: float,
        deadline: float,
        outage_budget_s: float,
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.pipeline_name = pipeline_name
        self.query = query
        self.limit = limit
        self.pipeline_conn_id = pipeline_conn_id
        self.poll_interval_s = poll_interval_s
        self.first_delay_s = first_delay_s
        self.deadline = deadline
        self.outage_budget_s = outage_budget_s

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """The class path and the arguments to make the trigger again."""
        names = (
            "pipeline_name",
            "query",
            "limit",
            "pipeline_conn_id",
            "poll_interval_s",
            "first_delay_s",
            "deadline",
            "outage_budget_s",
        )
        return f"{type(self).__module__}.{type(self).__qualname__}", {name: getattr(self, name) for name in names}

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Yield exactly one event: ``{"outcome", "message", "result": {"rows", "truncated"}}``."""
        await asyncio.sleep(self.first_delay_s + spread(self.poll_interval_s))
        what = f"the query of pipeline {self.pipeline_name!r}"
        try:
            async with asyncio.timeout(self.deadline - time.time()):
                rows = await self._rows(what)
        except TimeoutError:
            yield _event(WaitOutcome.TIMEOUT, f"{what}: time is up, and it is not answered")
        except PipelineConnectionError as error:
            yield _event(WaitOutcome.UNREACHABLE, str(error))
        except (PipelinesError, AirflowNotFoundException, SetupError, ValueError) as error:
            yield _event(WaitOutcome.ERROR, f"{what}: {error}")
        else:
            yield _event(WaitOutcome.REACHED, "answered", first_rows(rows, self.limit))

    async def on_kill(self) -> None:
        """A person cleared or marked the waiting task: nobody reads the answer any more, and the service ends the query."""
        self.log.info("No longer asking pipeline %s; it is left as it is", self.pipeline_name)

    async def _rows(self, what: str) -> list[Mapping[str, Any]]:
        """The rows, as soon as the service can be asked."""
        hook = PipelineHook(self.pipeline_conn_id)
        away_since: float | None = None
        while True:
            try:
                async with hook.shared_async_conn() as client:
                    return await client.query(self.pipeline_name, self.query, self.limit + 1)
            except PipelinesError as error:
                if not is_transient(error):
                    raise
                now = time.time()
                if away_since is None:
                    away_since = now
                    self.log.warning("%s is asked again: %s", what, error)
                if now - away_since > self.outage_budget_s:
                    raise PipelineConnectionError(
                        f"{what}: the service was away for {now - away_since:.0f} s, with: {error}"
                    ) from error
            await asyncio.sleep(jittered(self.poll_interval_s))


def first_rows(rows: list[Mapping[str, Any]], limit: int) -> dict[str, Any]:
    """What is told of an answer: ``{"rows", "truncated"}``, in JSON values.

    :param rows: the rows, one more than ``limit`` where there are more
    :param limit: rows to keep at most
    """
    return {"rows": [_json_value(row) for row in rows[:limit]], "truncated": len(rows) > limit}


def _json_value(value: Any) -> Any:
    """A query's value as JSON without loss."""
    if isinstance(value, Mapping):
        return {str(name): _json_value(inner) for name, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_json_value(inner) for inner in value]
    return value if value is None or isinstance(value, (str, int, float, bool)) else str(value)


def _event(outcome: WaitOutcome, message: str, result: dict[str, Any] | None = None) -> TriggerEvent:
    return TriggerEvent({"outcome": outcome.value, "message": message, "result": result or {}})  # type: ignore[no-untyped-call]
