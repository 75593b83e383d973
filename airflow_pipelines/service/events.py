"""Events as the REST contract shows them."""

from __future__ import annotations

import dataclasses
from typing import Any, Final

from airflow_pipelines.service.records import Selector, rfc3339
from airflow_pipelines.service.store import Event

_ONLY_ALL: Final = (
    "deployment_resources_status_details", "deployment_runtime_status_details", "deployment_error", "storage_status_details",
)  # fmt: skip


def event_to_wire(event: Event, selector: Selector) -> dict[str, Any]:
    """An event of a pipeline.

    :param event: the event
    :param selector: ``ALL`` for the details beside the statuses
    """
    values = dataclasses.asdict(event)
    values["event_id"] = str(event.event_id)
    values["recorded_at"] = rfc3339(event.recorded_at)
    values["deployment_has_error"] = event.deployment_error is not None
    if selector is not Selector.ALL:
        for key in _ONLY_ALL:
            del values[key]
    return values
