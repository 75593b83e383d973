"""An input without rows."""

from __future__ import annotations

from typing import Final

from pydantic import BaseModel, ConfigDict

from airflow_pipelines.connectors.base import InputChunk
from airflow_pipelines.connectors.definition import InputDefinition
from airflow_pipelines.engine.storage.connector_state import Position


class EmptyInputOptions(BaseModel):
    """The options of the transport, of which there are none."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class EmptyInput:
    """An input that reaches its end at once."""

    def open(self, position: Position | None) -> None:
        """Do nothing: there is nothing to prepare."""

    def read(self, max_records: int, timeout_s: float) -> InputChunk | None:  # noqa: ARG002 - the protocol's signature
        """Return the end of the input."""
        return InputChunk(None, 0, 0, {}, end_of_input=True)

    def close(self) -> None:
        """Do nothing: there is nothing to release."""


EMPTY_INPUT: Final = InputDefinition(name="empty_input", options=EmptyInputOptions, open=lambda *_: EmptyInput())
