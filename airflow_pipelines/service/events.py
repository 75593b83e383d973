"""The events of a pipeline in the form of the REST contract."""

from __future__ import annotations

import dataclasses
from typing import Any, Final

from airflow_pipelines.service.records import Selector, rfc3339
from airflow_pipelines.service.store import Event

_ONLY_ALL: Final = (
    "deployment_resources_status_details", "deployment_runtime_status_details", "deployment_error", "storage_status_details",
)  # fmt: skip


def event_to_wire(event: Event, selector: Selector) -> dict[str, Any]:
    """Return an event of a pipeline in wire form.

    :param event: the event
    :param selector: ``ALL`` to include the details
    """
    values = dataclasses.asdict(event)
    values["event_id"] = str(event.event_id)
    values["recorded_at"] = rfc3339(event.recorded_at)
    values["deployment_has_error"] = event.deployment_error is not None
    if selector is not Selector.ALL:
        for key in _ONLY_ALL:
            del values[key]
    return values
