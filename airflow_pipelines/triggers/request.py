"""The base class of triggers that send one request to the service and deliver its answer."""

from __future__ import annotations

import asyncio
import time
from abc import abstractmethod
from collections.abc import AsyncIterator
from typing import Any

from airflow.sdk.exceptions import AirflowNotFoundException
from airflow.triggers.base import BaseTrigger, TriggerEvent

from airflow_pipelines.common.pins import SetupError
from airflow_pipelines.hooks.conditions import is_transient
from airflow_pipelines.hooks.pipeline import PipelineHook
from airflow_pipelines.hooks.wait_metrics import WaitOutcome
from airflow_pipelines.hooks.waiting import add_jitter, spread
from airflow_pipelines.sdk.client import AsyncPipelineClient
from airflow_pipelines.sdk.errors import PipelineConnectionError, PipelinesError, PipelineTimeoutError


class RequestTrigger(BaseTrigger):
    """The base class of triggers that send a read-only request, so that a restarted triggerer can send it again.

    It sleeps before, because an event that comes while the worker is still leaving the deferred task can make Airflow fail the
    task. If the service is away, busy or restarting, the request is repeated for a while.

    :param pipeline_name: the pipeline of the task
    :param pipeline_conn_id: the connection's id; the connection itself is read in the triggerer
    :param poll_interval_s: seconds between two tries; up to a fifth is added at random
    :param first_delay_s: seconds before the first one; up to ``poll_interval_s`` is added at random
    :param deadline: the time after which it gives up, in seconds since the epoch
    :param outage_budget_s: seconds for which the service may be away
    """

    def __init__(
        self,
        *,
        pipeline_name: str,
        pipeline_conn_id: str,
        poll_interval_s: float,
        first_delay_s: float,
        deadline: float,
        outage_budget_s: float,
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.pipeline_name = pipeline_name
        self.pipeline_conn_id = pipeline_conn_id
        self.poll_interval_s = poll_interval_s
        self.first_delay_s = first_delay_s
        self.deadline = deadline
        self.outage_budget_s = outage_budget_s

    @property
    @abstractmethod
    def subject(self) -> str:
        """The subject of the request, for messages."""

    @abstractmethod
    async def ask(self, client: AsyncPipelineClient) -> dict[str, Any]:
        """Send the request once.

        :param client: a client for the connection
        :returns: the result of the event
        """

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Return the class path and the arguments to make the trigger again."""
        names = ("pipeline_name", "pipeline_conn_id", "poll_interval_s", "first_delay_s", "deadline", "outage_budget_s")
        return f"{type(self).__module__}.{type(self).__qualname__}", {name: getattr(self, name) for name in names}

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Yield exactly one event: ``{"outcome", "message", "result"}``."""
        await asyncio.sleep(self.first_delay_s + spread(self.poll_interval_s))
        result: dict[str, Any] = {}
        try:
            async with asyncio.timeout(self.deadline - time.time()):
                result = await self._answer()
        except TimeoutError:
            outcome, message = WaitOutcome.TIMEOUT, f"{self.subject}: time is up, and there is no answer"
        except PipelineConnectionError as error:
            outcome, message = WaitOutcome.UNREACHABLE, str(error)
        except (PipelinesError, AirflowNotFoundException, SetupError, ValueError) as error:
            outcome, message = WaitOutcome.ERROR, f"{self.subject}: {error}"
        else:
            outcome, message = WaitOutcome.REACHED, "answered"
        yield TriggerEvent({"outcome": outcome.value, "message": message, "result": result})  # type: ignore[no-untyped-call]

    async def on_kill(self) -> None:
        """Log that nobody waits for the answer any more, because a person cleared or marked the waiting task."""
        self.log.info("No longer waiting for %s; the pipeline is left as it is", self.subject)

    async def _answer(self) -> dict[str, Any]:
        """Return the answer, as soon as the service can be asked."""
        hook = PipelineHook(self.pipeline_conn_id)
        away_since: float | None = None
        while True:
            try:
                async with hook.shared_async_conn() as client:
                    return await self.ask(client)
            except PipelinesError as error:
                if isinstance(error, PipelineTimeoutError):
                    # The service is there, but busy.
                    continue
                if not is_transient(error):
                    raise
                now = time.time()
                if away_since is None:
                    away_since = now
                    self.log.warning("%s is asked for again: %s", self.subject, error)
                if now - away_since > self.outage_budget_s:
                    away = f"the service was away for {now - away_since:.0f} s, with: {error}"
                    raise PipelineConnectionError(f"{self.subject}: {away}") from error
            await asyncio.sleep(add_jitter(self.poll_interval_s))
