"""The options of connectors that do not depend on their transport."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, Field, field_validator

from airflow_pipelines.program.connectors import ConnectorDirection

_BYTES_PER_RECORD = 1000
"""The assumed number of bytes of a record if only the number of records is limited."""
_OF_INPUTS: Final = frozenset(
    {
        "max_batch_size",
        "max_worker_batch_size",
        "paused",
        "preprocessor",
        "soft_delete",
        "start_after",
    }
)
_OF_OUTPUTS: Final = frozenset(
    {
        "enable_output_buffer",
        "index",
        "max_output_buffer_size_records",
        "max_output_buffer_time_millis",
        "on_error",
        "postprocessor",
        "send_snapshot",
    }
)


class OnError(StrEnum):
    """The reaction of an output to a row that its target rejects."""

    SKIP = "skip"
    """The row is left out, counted and listed, and the output continues."""
    STOP = "stop"
    """The output ends."""


class ConnectorOptions(BaseModel):
    """Options of every connector. Inputs and outputs accept the same ones; those for the other direction have no effect.

    :param labels: names that ``start_after`` of others can refer to
    :param paused: True if an input starts paused
    :param start_after: labels; an input starts when all inputs that carry one of them have reached their end
    :param max_batch_size: the maximum number of records of an input in one step
    :param max_worker_batch_size: the same for each worker, if ``max_batch_size`` is not given
    :param max_queued_records: the maximum number of waiting records before an input pauses reading, or an output pauses steps
    :param max_queued_bytes: the same in bytes
    :param soft_delete: True to treat deletes from an input as inserts
    :param preprocessor: the processor of an input's bytes before they are parsed
    :param index: the name of an index of an output's view
    :param send_snapshot: True if an output begins with the view's contents
    :param enable_output_buffer: True if an output buffers changes for a while, and then writes them as one batch
    :param max_output_buffer_time_millis: the maximum time in milliseconds for which the oldest of them is buffered; None for no
        limit
    :param max_output_buffer_size_records: the maximum number of buffered changes
    :param on_error: the reaction of an output to a row that its target rejects
    :param postprocessor: the processor of an output's bytes before they are written
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    labels: tuple[str, ...] = ()
    paused: bool = False
    start_after: tuple[str, ...] | None = None
    max_batch_size: int | None = Field(default=None, ge=1)
    max_worker_batch_size: int | None = Field(default=None, ge=1)
    max_queued_records: int = Field(default=1_000_000, ge=1)
    max_queued_bytes: int | None = Field(default=None, ge=1)
    soft_delete: bool = False
    preprocessor: Any = None
    index: str | None = None
    send_snapshot: bool = False
    enable_output_buffer: bool = False
    max_output_buffer_time_millis: int | None = Field(default=None, ge=0)
    max_output_buffer_size_records: int = Field(default=10_000_000, ge=0)
    on_error: OnError = OnError.SKIP
    postprocessor: Any = None

    @field_validator("labels", "start_after", mode="before")
    @classmethod
    def _one_or_many(cls, value: Any) -> Any:
        return (value,) if isinstance(value, str) else value

    @property
    def queued_bytes(self) -> int:
        """The maximum number of waiting bytes before reading, or steps, pause."""
        return self.max_queued_bytes or _BYTES_PER_RECORD * self.max_queued_records

    def step_records(self, workers: int) -> int | None:
        """Return the maximum number of records of an input in one step, None for no limit of its own.

        :param workers: the number of workers of the pipeline
        """
        if self.max_batch_size is None and self.max_worker_batch_size is not None:
            return self.max_worker_batch_size * workers
        return self.max_batch_size

    def without_effect(self, direction: ConnectorDirection) -> tuple[str, ...]:
        """Return the names of the given options that connectors of this direction do not have.

        :param direction: the direction of the connector
        """
        foreign = _OF_OUTPUTS if direction is ConnectorDirection.INPUT else _OF_INPUTS
        defaults = type(self).model_fields
        given = self.model_fields_set & foreign
        return tuple(sorted(name for name in given if getattr(self, name) != defaults[name].default))
