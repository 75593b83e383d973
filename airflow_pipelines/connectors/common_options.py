"""The options of connectors that do not depend on their transport."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field, field_validator

_BYTES_PER_RECORD = 1000
"""What a record is taken to have where only the number of records is limited."""


class _ConnectorOptions(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    labels: tuple[str, ...] = ()
    max_batch_size: int | None = Field(default=None, ge=1)
    max_worker_batch_size: int | None = Field(default=None, ge=1)
    max_queued_records: int = Field(default=1_000_000, ge=1)
    max_queued_bytes: int | None = Field(default=None, ge=1)

    @property
    def queued_bytes(self) -> int:
        """How many bytes may wait before reading pauses."""
        return self.max_queued_bytes or _BYTES_PER_RECORD * self.max_queued_records

    @field_validator("labels", "start_after", mode="before", check_fields=False)
    @classmethod
    def _one_or_many(cls, value: Any) -> Any:
        return (value,) if isinstance(value, str) else value


class InputOptions(_ConnectorOptions):
    """Options of every input connector.

    :param paused: it starts paused
    :param labels: names that ``start_after`` of others may give
    :param start_after: it starts when all inputs that carry one of these labels have reached their end
    :param max_batch_size: the most records of it in one step
    :param max_worker_batch_size: the same for each worker, where ``max_batch_size`` is not given
    :param max_queued_records: how many records may wait before reading pauses
    :param max_queued_bytes: how many bytes may wait before reading pauses
    :param soft_delete: deletes are taken as inserts
    """

    paused: bool = False
    start_after: tuple[str, ...] | None = None
    soft_delete: bool = False

    def step_records(self, workers: int) -> int | None:
        """The most records of the connector in one step, None for no limit of its own.

        :param workers: those of the pipeline
        """
        if self.max_batch_size is None and self.max_worker_batch_size is not None:
            return self.max_worker_batch_size * workers
        return self.max_batch_size


class OutputOptions(_ConnectorOptions):
    """Options of every output connector.

    The limits of steps and queues are accepted, and change nothing: each step is written at once.

    :param send_snapshot: it begins with the view's contents
    :param enable_output_buffer: changes are kept for a while, and then written as one batch
    :param max_output_buffer_time_millis: for how long the first of them is kept; None for no limit
    :param max_output_buffer_size_records: how many of them are kept
    :param index: names an index of the view
    """

    index: str | None = None
    send_snapshot: bool = False
    enable_output_buffer: bool = False
    max_output_buffer_time_millis: int | None = Field(default=None, ge=1)
    max_output_buffer_size_records: int = Field(default=10_000_000, ge=1)
