"""Sensors on checkpoints and on their copies in the object store."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from airflow_pipelines.hooks.conditions import CheckpointCondition, Condition, SyncCondition
from airflow_pipelines.operators import arguments
from airflow_pipelines.sensors.base import PipelineSensor


class PipelineCheckpointSensor(PipelineSensor):
    """The sensor that waits until the pipeline has a checkpoint newer than another one, or than a time.

    It takes no checkpoint itself.

    A checkpoint that exists already counts, also if the pipeline is stopped. XCom: ``{"checkpoint", "taken_at", "steps",
    "processed_records", "size"}`` of the newest checkpoint.

    :param newer_than: the UUID of a checkpoint, or a time: a datetime or ISO 8601, such as ``"{{ data_interval_end }}"``
    """

    template_fields: Sequence[str] = (*PipelineSensor.template_fields, "newer_than")

    def __init__(self, *, newer_than: str | UUID | datetime, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.newer_than = newer_than
        self.complete_construction()

    def check_arguments(self) -> None:
        """See the base class."""
        super().check_arguments()
        self.newer_than = _text("newer_than", self.newer_than)

    def condition(self) -> Condition:
        """Return the condition on a newer checkpoint."""
        return CheckpointCondition(str(self.newer_than))


class PipelineSyncSensor(PipelineSensor):
    """The sensor that waits until the object store has the copy of a checkpoint newer than another one, or than a time.

    It copies no checkpoint itself.

    Each poll asks the running pipeline for the content of its object store. XCom: ``{"checkpoint", "taken_at"}`` of the newest
    copy.

    :param newer_than: as for PipelineCheckpointSensor; it is compared with the time when the checkpoint was taken, not when it was
        copied
    """

    template_fields: Sequence[str] = (*PipelineSensor.template_fields, "newer_than")

    def __init__(self, *, newer_than: str | UUID | datetime, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.newer_than = newer_than
        self.complete_construction()

    def check_arguments(self) -> None:
        """See the base class."""
        super().check_arguments()
        self.newer_than = _text("newer_than", self.newer_than)

    def condition(self) -> Condition:
        """Return the condition on a copy of a newer checkpoint."""
        return SyncCondition(str(self.newer_than))


def _text(name: str, value: Any) -> str:
    if isinstance(value, datetime):
        return value.isoformat()
    return arguments.text(name, str(value) if isinstance(value, UUID) else value)
