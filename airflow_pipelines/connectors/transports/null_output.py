"""An output that only counts."""

from __future__ import annotations

from typing import Final

from pydantic import BaseModel, ConfigDict

from airflow_pipelines.connectors.changes import Changes
from airflow_pipelines.connectors.definition import Delivery, Guarantee, OutputDefinition


class NullOutputOptions(BaseModel):
    """There are none."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class NullOutput:
    """Counts changes and writes nothing."""

    def open(self, resumed: bool) -> None:
        """There is nothing to prepare."""

    def write(self, step: int, changes: Changes) -> tuple[int, int]:  # noqa: ARG002 - the protocol's signature
        """The number of changes, and no bytes."""
        return changes.count(), 0

    def rewind(self, step: int) -> None:
        """There is nothing to take back."""

    def close(self) -> None:
        """There is nothing to let go of."""


NULL_OUTPUT: Final = OutputDefinition(
    name="null_output",
    options=NullOutputOptions,
    open=lambda *_: NullOutput(),
    guarantee=Guarantee.EXACTLY_ONCE,
    delivery=Delivery.IN_STEP,
)
