"""An output that only counts changes."""

from __future__ import annotations

from typing import Final

from pydantic import BaseModel, ConfigDict

from airflow_pipelines.connectors.changes import Changes
from airflow_pipelines.connectors.definition import Delivery, Guarantee, OutputDefinition


class NullOutputOptions(BaseModel):
    """The options of the transport, of which there are none."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class NullOutput:
    """An output that counts changes and writes nothing."""

    def open(self, resumed: bool) -> None:
        """Do nothing: there is nothing to prepare."""

    def write(self, step: int, changes: Changes) -> tuple[int, int]:  # noqa: ARG002 - the protocol's signature
        """Return the number of changes, and 0 bytes."""
        return changes.count(), 0

    def rewind(self, step: int) -> None:
        """Do nothing: there is nothing to take back."""

    def close(self) -> None:
        """Do nothing: there is nothing to release."""


NULL_OUTPUT: Final = OutputDefinition(
    name="null_output",
    options=NullOutputOptions,
    open=lambda *_: NullOutput(),
    guarantee=Guarantee.EXACTLY_ONCE,
    delivery=Delivery.IN_STEP,
)
