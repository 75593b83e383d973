"""The loss of a pipeline that goes back to an older checkpoint, as far as its descriptor tells it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID


def loss_text(descriptor: Mapping[str, Any], uuid: UUID) -> str:
    """Return one sentence about the loss, for the log.

    :param descriptor: the descriptor of the stopped pipeline
    :param uuid: the checkpoint to go back to
    """
    where = f"Going back to checkpoint {uuid}"
    offered = _entry(((descriptor.get("deployment_error") or {}).get("details") or {}).get("checkpoints"), uuid)
    # The pipeline's own figures, from its failed start, include the journal.
    if offered is not None and offered.get("lost_steps") is not None:
        return f"{where} loses the {offered['lost_steps']} steps after it, with {offered['lost_records']} records"
    checkpoints = (descriptor.get("storage_status_details") or {}).get("checkpoints") or []
    chosen = _entry(checkpoints, uuid)
    newest = max(checkpoints, key=lambda entry: str(entry["uuid"]), default=None)
    if chosen is None or newest is None:
        return f"{where} loses whatever came after it; the pipeline does not list that checkpoint, so it is not known how much"
    steps = newest["steps"] - chosen["steps"]
    records = newest["processed_records"] - chosen["processed_records"]
    return (
        f"{where} loses the {steps} steps with {records} records that the newest checkpoint, {newest['uuid']}, has beyond it, "
        "and whatever came after that one"
    )


def _entry(checkpoints: Any, uuid: UUID) -> Mapping[str, Any] | None:
    return next((entry for entry in checkpoints or [] if entry["uuid"] == str(uuid)), None)
