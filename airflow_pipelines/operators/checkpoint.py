"""Operators that make a pipeline's state safe: a checkpoint, and its copy in an object store."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from airflow.sdk import Asset

from airflow_pipelines.errors import PipelineFailedError
from airflow_pipelines.operators.base import PipelineOperator

if TYPE_CHECKING:
    from airflow.sdk import Context


class CheckpointPipelineOperator(PipelineOperator):
    """Takes a checkpoint of a running or paused pipeline and waits until it is complete.

    XCom: ``{"pipeline", "checkpoint", "sequence", "steps", "processed_records"}`` with the checkpoint's UUID. Assets given as
    ``outlets`` get the same as ``extra``, so that DAGs scheduled on them know which checkpoint they are about.

    :param timeout: seconds to wait at most
    """

    def __init__(self, *, timeout: float = 600.0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.timeout = timeout

    def act(self, context: Context) -> dict[str, Any]:
        """Take it."""
        with _worth_a_retry():
            checkpoint = self.hook.checkpoint(self.pipeline_name, timeout_s=self.timeout)
        result = {
            "pipeline": self.pipeline_name,
            "checkpoint": checkpoint.get("uuid"),
            "sequence": checkpoint["sequence"],
            "steps": checkpoint.get("steps"),
            "processed_records": checkpoint.get("processed_records"),
        }
        for outlet in self.outlets:
            if isinstance(outlet, Asset):
                context["outlet_events"][outlet].extra.update(result)
        return result


class SyncCheckpointOperator(PipelineOperator):
    """Copies the newest checkpoint to the object store named in the pipeline's storage configuration, and waits until it is there.

    Only files that are not there yet are copied. XCom: ``{"pipeline", "checkpoint"}`` with the checkpoint's UUID.

    :param timeout: seconds to wait at most
    """

    def __init__(self, *, timeout: float = 600.0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.timeout = timeout

    def act(self, context: Context) -> dict[str, Any]:
        """Copy it."""
        with _worth_a_retry():
            uuid = self.hook.sync_checkpoint(self.pipeline_name, timeout_s=self.timeout)
        return {"pipeline": self.pipeline_name, "checkpoint": str(uuid)}


@contextmanager
def _worth_a_retry() -> Iterator[None]:
    """A full disk or an object store that is away passes, so a failure of a pipeline that lives on is worth another try."""
    try:
        yield
    except PipelineFailedError as error:
        if error.deployment_error is None:
            raise RuntimeError(str(error)) from error
        raise
