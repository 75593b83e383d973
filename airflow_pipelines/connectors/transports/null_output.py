"""An output that only counts."""

from __future__ import annotations

from typing import Any

import pyarrow.compute as pc
from pydantic import BaseModel, ConfigDict

from airflow_pipelines.engine.batch import WEIGHT


class NullOutputOptions(BaseModel):
    """There are none."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class NullOutput:
    """Counts changes and writes nothing."""

    def open(self, resumed: bool) -> None:
        """There is nothing to prepare."""

    def write(self, step: int, batch: Any) -> tuple[int, int]:  # noqa: ARG002 - the protocol's signature
        """The number of changes in ``batch``, and no bytes."""
        return int(pc.sum(pc.abs(batch.column(WEIGHT))).as_py() or 0), 0

    def rewind(self, step: int) -> None:
        """There is nothing to take back."""

    def close(self) -> None:
        """There is nothing to let go of."""
