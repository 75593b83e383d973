"""The operator that clears the storage of pipelines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow.sdk.exceptions import AirflowFailException

from airflow_pipelines.hooks.conditions import StorageClearedCondition
from airflow_pipelines.operators.base import WaitingPipelineOperator

if TYPE_CHECKING:
    from airflow.sdk import Context


class ClearPipelineStorageOperator(WaitingPipelineOperator):
    """The operator that deletes everything a stopped pipeline has stored: tables, views, checkpoints, offsets in its sources.

    The program stays, and the next start begins with empty storage. This cannot be undone. A pipeline that is not stopped is left
    alone, and the task fails.

    XCom: ``{"pipeline", "cleared"}``; ``cleared`` is False if there was nothing to clear.
    """

    def act(self, context: Context) -> Any:
        """Clear the storage, unless it is empty."""
        descriptor = self.hook.descriptor(self.pipeline_name)
        if descriptor is None:
            raise AirflowFailException(f"There is no pipeline {self.pipeline_name!r}")
        if descriptor["storage_status"] == "Cleared":
            self.log.info("Pipeline %s has nothing stored", self.pipeline_name)
            return {"pipeline": self.pipeline_name, "cleared": False}
        self.hook.clear_storage(self.pipeline_name)
        return self.wait_and_finish(context, StorageClearedCondition())

    def finish(self, context: Context, outcome: dict[str, Any], **carried: Any) -> dict[str, Any]:
        """Return the XCom."""
        return {"pipeline": self.pipeline_name, "cleared": True}
