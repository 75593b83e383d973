"""The trigger that turns the events of a pipeline into asset events."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

from airflow.sdk.exceptions import AirflowException
from airflow.triggers.base import BaseEventTrigger, TriggerEvent

from airflow_pipelines.hooks.observing import poll_for_events
from airflow_pipelines.hooks.pipeline import DEFAULT_CONN_ID, PipelineHook
from airflow_pipelines.hooks.pipeline_events import PipelineEventKind, PipelineWatch
from airflow_pipelines.hooks.waiting import add_jitter, spread
from airflow_pipelines.sdk.client import AsyncPipelineClient
from airflow_pipelines.sdk.errors import PipelinesError


class PipelineEventTrigger(BaseEventTrigger):
    """The trigger that watches a pipeline for an ``AssetWatcher`` and reports each change once, never a state that lasts.

    The payload of an event is ``{"event", "pipeline", ...}`` with the figures of its kind. State from before the watch began is not
    reported. Changes while no triggerer ran are reported, because the watermark is kept with the asset.

    :param pipeline_name: the pipeline; it need not exist yet
    :param events: the events to report: names or members of :class:`~airflow_pipelines.hooks.pipeline_events.PipelineEventKind`
    :param pipeline_conn_id: the Airflow connection
    :param poll_interval_s: seconds between polls; up to a fifth is added at random
    :param idle_interval_s: seconds without new input after which a pipeline is idle
    :param name: a name that distinguishes triggers that are otherwise equal. Airflow runs equal triggers of several assets as one,
        and then has no place for its watermark
    """

    def __init__(
        self,
        *,
        pipeline_name: str,
        events: Sequence[str],
        pipeline_conn_id: str = DEFAULT_CONN_ID,
        poll_interval_s: float = 10.0,
        idle_interval_s: float = 30.0,
        name: str = "",
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        if not pipeline_name:
            raise ValueError("pipeline_name is empty")
        if isinstance(events, str) or not events:
            raise ValueError(f"events is {events!r}: give a list of kinds: {', '.join(PipelineEventKind)}")
        self.pipeline_name = pipeline_name
        self.events = sorted(PipelineEventKind.of(kind).value for kind in events)
        self.pipeline_conn_id = pipeline_conn_id
        self.poll_interval_s = poll_interval_s
        self.idle_interval_s = idle_interval_s
        self.name = name

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Return the class path and the arguments to make the trigger again."""
        names = ("pipeline_name", "events", "pipeline_conn_id", "poll_interval_s", "idle_interval_s", "name")
        return f"{type(self).__module__}.{type(self).__qualname__}", {name: getattr(self, name) for name in names}

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Poll for ever, and yield the events."""
        store = _WatermarkStore(self, f"airflow_pipelines/{self.pipeline_conn_id}/{self.pipeline_name}/{'+'.join(self.events)}")
        watch = PipelineWatch(
            [PipelineEventKind.of(kind) for kind in self.events],
            idle_interval_s=self.idle_interval_s,
            watermark=await store.load(),
        )
        hook = PipelineHook(self.pipeline_conn_id)
        trouble = ""
        await asyncio.sleep(spread(self.poll_interval_s))
        while True:
            try:
                async with hook.shared_async_conn() as client:
                    happened = await self._look(client, watch)
            except (PipelinesError, AirflowException, ValueError) as error:
                # Somebody may fix any error while the watch continues.
                if trouble != str(error):
                    self.log.warning("Watching pipeline %s: %s", self.pipeline_name, error)
                trouble, happened = str(error), []
            else:
                if trouble:
                    self.log.info("Watching pipeline %s: it can be seen again", self.pipeline_name)
                trouble = ""
            for event in happened:
                self.log.info("Pipeline %s: %s", self.pipeline_name, event)
                yield TriggerEvent(event)  # type: ignore[no-untyped-call]
            # Saved after the events: after a crash, a repeated event is better than a lost one.
            await store.save(watch.watermark)
            await asyncio.sleep(add_jitter(self.poll_interval_s))

    async def _look(self, client: AsyncPipelineClient, watch: PipelineWatch) -> list[dict[str, Any]]:
        poll = await poll_for_events(client, self.pipeline_name, watch)
        return [] if poll is None else watch.detect_events(poll)


class _WatermarkStore:
    """The store of a trigger's watermark: that of the asset, if the trigger has one of its own."""

    def __init__(self, trigger: PipelineEventTrigger, key: str) -> None:
        self._trigger = trigger
        self._key = key
        self._saved: dict[str, Any] | None = None
        self._is_there = trigger.asset_state_store is not None

    async def load(self) -> dict[str, Any] | None:
        """Return the watermark that an earlier process has stored, or None if there is none."""
        if not self._is_there or self._trigger.asset_state_store is None:
            return None
        try:
            kept = await self._trigger.asset_state_store.aget(self._key)
        except ValueError as error:
            # Several assets whose triggers are equal.
            self._is_there = False
            self._trigger.log.warning(
                "Watching pipeline %s without a watermark, so a restart of the triggerer misses what happens meanwhile: %s. "
                "Give the triggers of the assets different names.",
                self._trigger.pipeline_name,
                error,
            )
            return None
        self._saved = kept if isinstance(kept, dict) else None
        return self._saved

    async def save(self, watermark: dict[str, Any]) -> None:
        """Store a watermark that has moved."""
        if not self._is_there or self._trigger.asset_state_store is None or watermark == self._saved:
            return
        await self._trigger.asset_state_store.aset(self._key, watermark)
        self._saved = watermark
