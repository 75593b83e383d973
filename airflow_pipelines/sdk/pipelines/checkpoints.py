"""The checkpoints of a pipeline, and their copies in an object store."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from airflow_pipelines.contract.descriptors import CheckpointMetadata
from airflow_pipelines.contract.enums import CheckpointStatus
from airflow_pipelines.sdk.errors import PipelineFailedError
from airflow_pipelines.sdk.pipelines.base import STATUS_POLL_S, PipelineBase
from airflow_pipelines.sdk.pipelines.waiting import wait_until


class PipelineCheckpoints(PipelineBase):
    """The methods that take, sync and list checkpoints."""

    def checkpoint(self, wait: bool = False, timeout_s: float | None = None) -> int:
        """Request a checkpoint.

        :param wait: True to wait until it is complete
        :param timeout_s: maximum number of seconds to wait; None waits without limit
        :returns: the checkpoint's sequence number, for :meth:`checkpoint_status`; it counts within one incarnation
        :raises PipelineAPIError: when the pipeline cannot take checkpoints now
        :raises PipelineFailedError: when the awaited checkpoint fails, or the pipeline stops
        :raises PipelineTimeoutError: when it is not complete in time
        """
        return int(self.checkpoint_response(wait, timeout_s)["checkpoint_sequence_number"])

    def checkpoint_response(self, wait: bool = False, timeout_s: float | None = None) -> dict[str, Any]:
        """Request a checkpoint, as :meth:`checkpoint` does.

        :param wait: True to wait until it is complete
        :param timeout_s: maximum number of seconds to wait; None waits without limit
        :returns: the service's answer: ``checkpoint_sequence_number``, and the ``incarnation_uuid`` in which it counts
        :raises PipelineAPIError: when the pipeline cannot take checkpoints now
        :raises PipelineFailedError: when the awaited checkpoint fails, or the pipeline stops
        :raises PipelineTimeoutError: when it is not complete in time
        """
        answer: dict[str, Any] = self.client.post(self._path("checkpoint"))
        seq = int(answer["checkpoint_sequence_number"])
        if wait:
            last = "nothing"

            def outcome() -> CheckpointStatus | None:
                nonlocal last
                last = self._raise_if_down(f"checkpoint {seq}")
                status = self.checkpoint_status(seq)
                last = f"checkpoint {status.name}, {last}"
                return None if status == CheckpointStatus.InProgress else status

            what = f"checkpoint {seq} of pipeline {self.name!r}"
            status = wait_until(outcome, what=what, seen=lambda: last, timeout_s=timeout_s, poll_s=STATUS_POLL_S)
            if status == CheckpointStatus.Failure:
                raise PipelineFailedError(f"{what} failed: {status.get_error()}")
        return answer

    def checkpoint_status(self, seq: int) -> CheckpointStatus:
        """Return the status of a checkpoint.

        :param seq: the sequence number that :meth:`checkpoint` returned
        :returns: ``Success``; ``Failure`` with its error; ``InProgress``; or ``Unknown`` if a newer one has completed since
        :raises PipelineAPIError: when the pipeline has no host
        """
        answer = self.client.get(self._path("checkpoint_status"))
        success, failure = answer.get("success"), answer.get("failure")
        if success == seq:
            return CheckpointStatus.Success
        if failure and failure.get("sequence_number") == seq:
            return CheckpointStatus.Failure._with_error(failure.get("error"))
        if success is None or seq > success:
            return CheckpointStatus.InProgress
        return CheckpointStatus.Unknown

    def checkpoints(self) -> list[CheckpointMetadata]:
        """Return the checkpoints that the pipeline keeps.

        :returns: oldest first, as the service lists them
        :raises PipelineAPIError: when the pipeline has no host
        """
        return [CheckpointMetadata.from_dict(entry) for entry in self.client.get(self._path("checkpoints"))]

    def remote_checkpoints(self) -> list[CheckpointMetadata]:
        """Return the checkpoints in the object store that the pipeline's storage configuration names.

        :returns: newest first; only their UUIDs are known
        :raises PipelineAPIError: when the pipeline has no host, no object store is configured, or it does not answer
        """
        return [CheckpointMetadata.from_dict(entry) for entry in self.client.get(self._path("checkpoints", "remote"))]

    def sync_checkpoint(
        self,
        wait: bool = False,
        timeout_s: float | None = None,
        *,
        checkpoint: UUID | None = None,
        retention_min_count: int | None = None,
        retention_min_age: float | None = None,
    ) -> str:
        """Copy a checkpoint to the object store that the pipeline's storage configuration names, and remove outdated copies there.

        :param wait: True to wait until it is copied
        :param timeout_s: maximum number of seconds to wait; None waits without limit
        :param checkpoint: the checkpoint; None for the newest
        :param retention_min_count: the number of newest copies to keep; None for the configured number
        :param retention_min_age: the number of days for which copies are kept; None for the configured number
        :returns: the checkpoint's UUID, for :meth:`sync_checkpoint_status`
        :raises PipelineAPIError: when there is no such checkpoint, or no object store is configured
        :raises RuntimeError: when the awaited sync fails, or the pipeline stops
        :raises PipelineTimeoutError: when it is not complete in time
        """
        answer = self.sync_checkpoint_response(
            wait,
            timeout_s,
            checkpoint=checkpoint,
            retention_min_count=retention_min_count,
            retention_min_age=retention_min_age,
        )
        return str(answer["checkpoint_uuid"])

    def sync_checkpoint_response(
        self,
        wait: bool = False,
        timeout_s: float | None = None,
        *,
        checkpoint: UUID | None = None,
        retention_min_count: int | None = None,
        retention_min_age: float | None = None,
    ) -> dict[str, Any]:
        """Copy a checkpoint to the object store, as :meth:`sync_checkpoint` does.

        :param wait: True to wait until it is copied
        :param timeout_s: maximum number of seconds to wait; None waits without limit
        :param checkpoint: the checkpoint; None for the newest
        :param retention_min_count: the number of newest copies to keep; None for the configured number
        :param retention_min_age: the number of days for which copies are kept; None for the configured number
        :returns: the service's answer: ``checkpoint_uuid``, and the ``incarnation_uuid`` of the pipeline
        :raises PipelineAPIError: when there is no such checkpoint, or no object store is configured
        :raises RuntimeError: when the awaited sync fails, or the pipeline stops
        :raises PipelineTimeoutError: when it is not complete in time
        """
        params = {
            "checkpoint_uuid": None if checkpoint is None else str(checkpoint),
            "retention_min_count": retention_min_count,
            "retention_min_age": retention_min_age,
        }
        answer: dict[str, Any] = self.client.post(self._path("checkpoint", "sync"), params=params)
        uuid = str(answer["checkpoint_uuid"])
        if wait:
            last = "nothing"

            def outcome() -> CheckpointStatus | None:
                nonlocal last
                last = self._raise_if_down(f"the sync of checkpoint {uuid}")
                synced = self._sync_status()
                last = f"newest synced checkpoint {_newest_synced(synced) or 'none'}, {last}"
                status = _sync_outcome(synced, uuid)
                return None if status == CheckpointStatus.Unknown else status

            what = f"the sync of checkpoint {uuid} of pipeline {self.name!r}"
            status = wait_until(outcome, what=what, seen=lambda: last, timeout_s=timeout_s, poll_s=STATUS_POLL_S)
            if status == CheckpointStatus.Failure:
                raise PipelineFailedError(f"{what} failed: {status.get_error()}")
        return answer

    def sync_checkpoint_status(self, uuid: str) -> CheckpointStatus:
        """Return the status of a checkpoint's sync.

        :param uuid: the checkpoint's UUID
        :returns: ``Success``; ``Failure`` with its error (not raised); or ``Unknown`` if it is in progress or not known
        :raises PipelineAPIError: when the pipeline has no host
        """
        return _sync_outcome(self._sync_status(), uuid)

    def last_successful_checkpoint_sync(self) -> UUID | None:
        """Return the newest checkpoint that is in the object store.

        :returns: its UUID; None if none was synced yet
        :raises PipelineAPIError: when the pipeline has no host
        """
        return _newest_synced(self._sync_status())

    def _sync_status(self) -> dict[str, Any]:
        answer: dict[str, Any] = self.client.get(self._path("checkpoint", "sync_status"))
        return answer


def _sync_outcome(answer: dict[str, Any], uuid: str) -> CheckpointStatus:
    ended = next((copy for copy in answer["copies"] if UUID(copy["uuid"]) == UUID(uuid)), None)
    if ended is None:
        return CheckpointStatus.Unknown
    return CheckpointStatus.Success if ended["error"] is None else CheckpointStatus.Failure._with_error(ended["error"])


def _newest_synced(answer: dict[str, Any]) -> UUID | None:
    synced = [UUID(answer[key]) for key in ("success", "periodic") if answer.get(key)]
    return max(synced, default=None)
