"""Sensors on how much of a pipeline is safe: in a checkpoint, and in a checkpoint's copy."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from airflow_pipelines.hooks.conditions import CheckpointCondition, Condition, SyncCondition
from airflow_pipelines.operators import arguments
from airflow_pipelines.sensors.base import PipelineSensor


class PipelineCheckpointSensor(PipelineSensor):
    """Waits until the pipeline has a checkpoint newer than another one, or than a moment. It takes none itself.

    One that is there already counts, also of a stopped pipeline. XCom: ``{"checkpoint", "taken_at", "steps", "processed_records",
    "size"}`` of the newest.

    :param newer_than: the UUID of a checkpoint, or a moment: a datetime or ISO 8601, such as ``"{{ data_interval_end }}"``
    """

    template_fields: Sequence[str] = (*PipelineSensor.template_fields, "newer_than")

    def __init__(self, *, newer_than: str | UUID | datetime, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.newer_than = newer_than
        self.constructed()

    def check_arguments(self) -> None:
        """See the base class."""
        super().check_arguments()
        self.newer_than = _text("newer_than", self.newer_than)

    def condition(self) -> Condition:
        """A newer checkpoint."""
        return CheckpointCondition(str(self.newer_than))


class PipelineSyncSensor(PipelineSensor):
    """Waits until the object store has the copy of a checkpoint newer than another one, or than a moment. It copies none itself.

    The running pipeline is asked what its object store has, at each poll. XCom: ``{"checkpoint", "taken_at"}`` of the newest copy.

    :param newer_than: as of PipelineCheckpointSensor; it is compared with when the checkpoint was taken, not when it was copied
    """

    template_fields: Sequence[str] = (*PipelineSensor.template_fields, "newer_than")

    def __init__(self, *, newer_than: str | UUID | datetime, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.newer_than = newer_than
        self.constructed()

    def check_arguments(self) -> None:
        """See the base class."""
        super().check_arguments()
        self.newer_than = _text("newer_than", self.newer_than)

    def condition(self) -> Condition:
        """A copy of a newer checkpoint."""
        return SyncCondition(str(self.newer_than))


def _text(name: str, value: Any) -> str:
    if isinstance(value, datetime):
        return value.isoformat()
    return arguments.text(name, str(value) if isinstance(value, UUID) else value)
