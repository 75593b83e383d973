"""The lifecycle of a pipeline: starting, pausing, stopping, changing and deleting it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any
from uuid import UUID

from airflow_pipelines.contract.enums import BootstrapPolicy, PipelineFieldSelector, PipelineStatus, StorageStatus
from airflow_pipelines.sdk.approval import NOT_GIVEN, NotGiven, approval_body
from airflow_pipelines.sdk.errors import PipelineAPIError, PipelineFailedError, refused_program
from airflow_pipelines.sdk.pipelines.base import PipelineBase, describe_status, is_down
from airflow_pipelines.sdk.pipelines.waiting import wait_until
from airflow_pipelines.sdk.runtime_config import RuntimeConfig
from airflow_pipelines.sdk.stream_collecting import StreamProgramArguments, StreamProgramSource

if TYPE_CHECKING:
    from airflow_pipelines.sdk.output_handler import OutputHandler

STOP_POLL_S = 0.1
LISTENER_STOP_S = 10.0


class PipelineLifecycle(PipelineBase):
    """The methods that move a pipeline from state to state.

    ``timeout_s`` is in seconds everywhere, None waits without limit, and a wait that times out raises ``PipelineTimeoutError`` with
    the awaited condition and the last state seen. If the pipeline stops with an error during a wait, the wait raises
    ``PipelineFailedError`` at once.
    """

    _listeners: list[OutputHandler]

    def start(
        self,
        bootstrap_policy: BootstrapPolicy | None = None,
        wait: bool = True,
        timeout_s: float | None = None,
        dismiss_error: bool = True,
        *,
        silent_bootstrap: bool | None = None,
        concurrent_bootstrap: bool | None = None,
        from_checkpoint: UUID | str | None = None,
    ) -> None:
        """Start the pipeline. It resumes from its newest checkpoint, if it has one.

        :param bootstrap_policy: the reaction to a program that differs from the checkpoint's; default: await approval
        :param wait: True to wait until the pipeline runs, or awaits approval
        :param timeout_s: maximum number of seconds to wait
        :param dismiss_error: True to dismiss an earlier deployment error; otherwise such an error makes the call fail
        :param silent_bootstrap: True to send nothing to outputs while bootstrapping
        :param concurrent_bootstrap: True to keep unchanged views running while new ones are bootstrapped
        :param from_checkpoint: an older checkpoint to go back to. Everything after it is lost; its files are set aside in the
            pipeline's storage.
        :raises RuntimeError: when the pipeline is not stopped, or does not come up; then with the deployment error's message
        :raises PipelineAPIError: when the service refuses, for example because the program does not compile
        :raises PipelineTimeoutError: when the pipeline does not come up in time
        """
        options = {
            "silent_bootstrap": silent_bootstrap,
            "concurrent_bootstrap": concurrent_bootstrap,
            "from_checkpoint": None if from_checkpoint is None else str(from_checkpoint),
        }
        self._start(PipelineStatus.RUNNING, bootstrap_policy, wait, timeout_s, dismiss_error, options)

    def start_paused(
        self,
        bootstrap_policy: BootstrapPolicy | None = None,
        wait: bool = True,
        timeout_s: float | None = None,
        dismiss_error: bool = True,
        *,
        silent_bootstrap: bool | None = None,
        concurrent_bootstrap: bool | None = None,
        from_checkpoint: UUID | str | None = None,
    ) -> None:
        """Start the pipeline paused, so that listeners can be attached before :meth:`resume` lets input in.

        :param bootstrap_policy: as for :meth:`start`, as are all other arguments
        :param wait: True to wait until the pipeline is paused, or awaits approval
        :param timeout_s: maximum number of seconds to wait
        :param dismiss_error: see :meth:`start`
        :param silent_bootstrap: see :meth:`start`
        :param concurrent_bootstrap: see :meth:`start`
        :param from_checkpoint: see :meth:`start`
        :raises RuntimeError: as for :meth:`start`
        :raises PipelineAPIError: as for :meth:`start`
        :raises PipelineTimeoutError: as for :meth:`start`
        """
        options = {
            "silent_bootstrap": silent_bootstrap,
            "concurrent_bootstrap": concurrent_bootstrap,
            "from_checkpoint": None if from_checkpoint is None else str(from_checkpoint),
        }
        self._start(PipelineStatus.PAUSED, bootstrap_policy, wait, timeout_s, dismiss_error, options)

    def start_standby(
        self,
        bootstrap_policy: BootstrapPolicy | None = None,
        wait: bool = True,
        timeout_s: float | None = None,
        dismiss_error: bool = True,
        *,
        silent_bootstrap: bool | None = None,
        concurrent_bootstrap: bool | None = None,
    ) -> None:
        """Start the pipeline in standby: it repeatedly pulls the newest checkpoint from its object store, and processes nothing.

        A pipeline that was activated before over the same storage does not enter standby: it resumes from its own storage, and
        runs.

        :param bootstrap_policy: the reaction, on activation, to a program that differs from the checkpoint's; default: await
            approval
        :param wait: True to wait until the pipeline is in standby, or runs
        :param timeout_s: see :meth:`start`
        :param dismiss_error: see :meth:`start`
        :param silent_bootstrap: see :meth:`start`
        :param concurrent_bootstrap: see :meth:`start`
        :raises RuntimeError: as for :meth:`start`
        :raises PipelineAPIError: as for :meth:`start`; also when no object store is configured
        :raises PipelineTimeoutError: as for :meth:`start`
        """
        options = {"silent_bootstrap": silent_bootstrap, "concurrent_bootstrap": concurrent_bootstrap}
        self._start(PipelineStatus.STANDBY, bootstrap_policy, wait, timeout_s, dismiss_error, options)

    def activate(self, wait: bool = True, timeout_s: float | None = None) -> PipelineStatus | None:
        """Let a pipeline in standby pull one last time, and run from the newest checkpoint.

        :param wait: True to wait until the pipeline runs, or awaits approval
        :param timeout_s: maximum number of seconds to wait
        :returns: the status reached; None without waiting
        :raises PipelineAPIError: when the pipeline is not in standby
        :raises PipelineFailedError: when it stops with an error meanwhile
        :raises PipelineTimeoutError: when it does not run in time
        """
        self.client.post(self._path("activate"))
        if not wait:
            return None
        expected = {PipelineStatus.RUNNING, PipelineStatus.AWAITINGAPPROVAL}
        what = f"pipeline {self.name!r} to be activated"
        return self._wait_for_status(expected, what=what, action="ACTIVATE", timeout_s=timeout_s)

    def pause(self, wait: bool = True, timeout_s: float | None = None) -> None:
        """Pause the input. A paused pipeline stays paused.

        :param wait: True to wait until the pipeline is paused
        :param timeout_s: maximum number of seconds to wait
        :raises PipelineAPIError: when the pipeline has no host
        :raises PipelineFailedError: when it stops with an error meanwhile
        :raises PipelineTimeoutError: when it does not pause in time
        """
        self.client.post(self._path("pause"))
        if wait:
            what = f"pipeline {self.name!r} to pause"
            self._wait_for_status({PipelineStatus.PAUSED}, what=what, action="PAUSE", timeout_s=timeout_s)

    def resume(self, wait: bool = True, timeout_s: float | None = None) -> None:
        """Resume the input. A running pipeline keeps running.

        :param wait: True to wait until the pipeline runs
        :param timeout_s: maximum number of seconds to wait
        :raises PipelineAPIError: when the pipeline has no host
        :raises PipelineFailedError: when it stops with an error meanwhile
        :raises PipelineTimeoutError: when it does not run in time
        """
        self.client.post(self._path("resume"))
        if wait:
            what = f"pipeline {self.name!r} to resume"
            self._wait_for_status({PipelineStatus.RUNNING}, what=what, action="RESUME", timeout_s=timeout_s)

    def stop(self, force: bool, wait: bool = True, timeout_s: float | None = None) -> None:
        """Stop the pipeline, in any state.

        :param force: True stops it at once; False takes a checkpoint first
        :param wait: True to wait until it is stopped, and to end its listeners
        :param timeout_s: maximum number of seconds to wait
        :raises PipelineFailedError: when the checkpoint could not be taken, for example because the disk is full. The pipeline is
            stopped nevertheless, as by force, and has the reason as its deployment error.
        :raises PipelineTimeoutError: when it does not stop in time
        """
        earlier = None if force else self._read(PipelineFieldSelector.STATUS)["deployment_error"]
        self.client.post(self._path("stop"), params={"force": force}, idempotent=True)
        if not wait:
            return
        last = "nothing"

        def check_stopped() -> dict[str, Any] | None:
            nonlocal last
            descriptor = self._read(PipelineFieldSelector.STATUS, idempotent=False)
            last = describe_status(descriptor)
            return descriptor if is_down(descriptor) else None

        what = f"pipeline {self.name!r} to stop"
        descriptor = wait_until(check_stopped, what=what, seen=lambda: last, timeout_s=timeout_s, poll_s=STOP_POLL_S)
        for listener in self._listeners:
            listener.join(LISTENER_STOP_S)
        self._listeners.clear()
        error = descriptor["deployment_error"]
        if not force and error and error != earlier:
            raise PipelineFailedError(f"pipeline {self.name!r} stopped without its final checkpoint: {error.get('message')}", error)

    def restart(
        self,
        bootstrap_policy: BootstrapPolicy | None = None,
        timeout_s: float | None = None,
        dismiss_error: bool = True,
        *,
        silent_bootstrap: bool | None = None,
        concurrent_bootstrap: bool | None = None,
    ) -> None:
        """Stop the pipeline by force, without a checkpoint, and start it again.

        :param bootstrap_policy: as for :meth:`start`
        :param timeout_s: the maximum number of seconds to wait for each of the two
        :param dismiss_error: as for :meth:`start`
        :param silent_bootstrap: as for :meth:`start`
        :param concurrent_bootstrap: as for :meth:`start`
        :raises RuntimeError: as for :meth:`start`
        :raises PipelineAPIError: as for :meth:`start`
        :raises PipelineTimeoutError: when it does not stop or start in time
        """
        self.stop(force=True, timeout_s=timeout_s)
        self.start(
            bootstrap_policy=bootstrap_policy,
            timeout_s=timeout_s,
            dismiss_error=dismiss_error,
            silent_bootstrap=silent_bootstrap,
            concurrent_bootstrap=concurrent_bootstrap,
        )

    def approve(
        self,
        *,
        silent_bootstrap: bool | None = None,
        concurrent_bootstrap: bool | None = None,
        expected_programs: Mapping[str, Any] | NotGiven = NOT_GIVEN,
    ) -> None:
        """Let a pipeline in AWAITINGAPPROVAL bootstrap its changes. Does nothing if it does not await approval.

        The call returns when the pipeline has left that state; use :meth:`wait_for_status` to wait until it runs.

        :param silent_bootstrap: replaces the value of the start; see :meth:`start`
        :param concurrent_bootstrap: replaces the value of the start; see :meth:`start`
        :param expected_programs: the ``programs`` of the :meth:`pending_change` that is approved; without it, any waiting change is
            approved
        :raises ValueError: when ``expected_programs`` is empty or None
        :raises PipelineAPIError: when the pipeline has no host; with code ``UnexpectedProgram`` when it has other programs than the
            expected ones, in which case nothing is approved
        """
        flags = {"silent_bootstrap": silent_bootstrap, "concurrent_bootstrap": concurrent_bootstrap}
        self.client.post(self._path("approve"), params=flags, json=approval_body(expected_programs))

    def dismiss_error(self) -> None:
        """Dismiss the deployment error of a stopped pipeline.

        :raises PipelineAPIError: when the pipeline has an error and is not stopped
        """
        self.client.post(self._path("dismiss_error"), idempotent=True)

    def clear_storage(self, wait: bool = True, timeout_s: float | None = None, poll_interval_s: float = 0.25) -> None:
        """Delete everything the pipeline has stored: tables, views, checkpoints, positions. This cannot be undone.

        :param wait: True to wait until all is deleted
        :param timeout_s: maximum number of seconds to wait
        :param poll_interval_s: the maximum number of seconds between two polls
        :raises PipelineAPIError: when the pipeline is not stopped
        :raises PipelineTimeoutError: when storage is not cleared in time
        """
        self.client.post(self._path("clear"), idempotent=True)
        if not wait:
            return
        last = "nothing"

        def check_cleared() -> bool | None:
            nonlocal last
            last = f"storage {self._read(PipelineFieldSelector.STATUS, idempotent=False)['storage_status']}"
            return True if StorageStatus.from_str(self._descriptor["storage_status"]) is StorageStatus.CLEARED else None

        what = f"the storage of pipeline {self.name!r} to be cleared"
        wait_until(check_cleared, what=what, seen=lambda: last, timeout_s=timeout_s, poll_s=poll_interval_s)

    def update_runtime(self) -> None:
        """Move the pipeline to the service's release: the program is compiled again if another release compiled it.

        :raises PipelineAPIError: when the pipeline is not stopped
        """
        self.client.post(self._path("update_runtime"))

    def rebalance(self) -> None:
        """Do nothing: Spark decides in each step where rows are processed.

        :raises PipelineAPIError: when the pipeline has no host
        """
        self.client.post(self._path("rebalance"))

    def start_compaction(self) -> None:
        """Merge the batches of all relations now; otherwise this happens automatically once there are many.

        The call returns at once. Steps wait until the merge is done, which is recorded in the pipeline's log.

        :raises PipelineAPIError: when the pipeline has no host
        """
        self.client.post(self._path("start_compaction"))

    def testing_force_update_platform_version(self, platform_version: str) -> None:
        """Pretend that another release has compiled the program, to test the consequences.

        :param platform_version: the version of that release
        :raises PipelineAPIError: when the service was not started for tests (its unstable feature ``testing``)
        """
        self.client.post(self._path("testing"), params={"set_platform_version": platform_version})

    def delete(self, clear_storage: bool = False) -> None:
        """Delete the pipeline. It must be stopped.

        :param clear_storage: True to clear its storage first; a pipeline that still holds storage cannot be deleted
        :raises PipelineAPIError: when the pipeline is not stopped or holds storage
        """
        if clear_storage:
            self.clear_storage()
        self.client.delete(self._path())
        self._descriptor = {}

    def modify(
        self,
        sql: str | None = None,
        udf_rust: str | None = None,
        udf_toml: str | None = None,
        program_config: Mapping[str, Any] | None = None,
        runtime_config: Mapping[str, Any] | RuntimeConfig | None = None,
        description: str | None = None,
        *,
        tags: list[str] | None = None,
        udf_python: str | None = None,
        stream_program: StreamProgramSource | None = None,
        stream_files: Sequence[str | os.PathLike[str]] = (),
        stream_arguments: Sequence[str] | None = None,
        allow_compile_errors: bool = False,
    ) -> None:
        """Change the pipeline; fields that are not given stay. State is kept: the next start bootstraps the changes.

        A new program is compiled before it replaces one that compiles.

        :param sql: the new program
        :param udf_rust: Rust code; anything but an empty text is a program error
        :param udf_toml: Rust dependencies; anything but an empty text is a program error
        :param program_config: new compiler configuration
        :param runtime_config: new, complete runtime configuration
        :param description: new description; may be changed in any state
        :param tags: new tags; may be changed in any state
        :param udf_python: the new Python module of the program's functions
        :param stream_program: the new stream program, see :class:`~airflow_pipelines.sdk.pipeline_builder.PipelineBuilder`; ``{}``
            removes it
        :param stream_files: other files of the new stream program
        :param stream_arguments: the new command line of the stream program
        :param allow_compile_errors: True to let a program that does not compile replace one that does, and an empty one replace
            any; such a change returns at once
        :raises StreamFilesError: when a file of the stream program is missing or cannot be used
        :raises ProgramCompilationError: when the new program does not compile and the old one does; nothing is changed then
        :raises PipelineAPIError: when the new program is empty and the old one is not (``EmptyProgram``), when the pipeline is not
            stopped (``UpdateRestrictedToStopped``), or a field cannot change while storage is in use
            (``EditRestrictedToClearedStorage``)
        """
        if isinstance(runtime_config, RuntimeConfig):
            runtime_config = runtime_config.to_dict()
        fields = {
            "program_code": sql,
            "udf_rust": udf_rust,
            "udf_toml": udf_toml,
            "udf_python": udf_python,
            "program_config": program_config,
            "runtime_config": runtime_config,
            "description": description,
            "tags": tags,
        }
        body: dict[str, Any] = {name: value for name, value in fields.items() if value is not None}
        body |= StreamProgramArguments.collect(stream_program, stream_files, stream_arguments).to_wire()
        try:
            self.client.patch(self._path(), json=body, params={"allow_compile_errors": allow_compile_errors})
        except PipelineAPIError as error:
            raise refused_program(error, self.name) from error

    def set_runtime_config(self, runtime_config: RuntimeConfig) -> None:
        """Change the runtime configuration. The pipeline must be stopped, and for some values its storage cleared.

        :param runtime_config: the new configuration; best obtained by changing the one that :meth:`runtime_config` returns
        :raises PipelineAPIError: as for :meth:`modify`
        """
        self.modify(runtime_config=runtime_config)

    def _start(
        self,
        initial: PipelineStatus,
        policy: BootstrapPolicy | None,
        wait: bool,
        timeout_s: float | None,
        dismiss_error: bool,
        options: Mapping[str, bool | str | None],
    ) -> None:
        descriptor = self._read(PipelineFieldSelector.STATUS)
        if not is_down(descriptor):
            raise PipelineFailedError(
                f"cannot start pipeline {self.name!r} now: {describe_status(descriptor)}; it must be STOPPED. "
                "Use resume() for a paused pipeline, approve() for one that awaits approval, or stop() first."
            )
        if dismiss_error:
            self.dismiss_error()
        params = {
            "initial": str(initial.value).lower(),
            "bootstrap_policy": None if policy is None else policy.value,
            "dismiss_error": False,
            **options,
        }
        self.client.post(self._path("start"), params=params)
        if wait:
            expected = {initial, PipelineStatus.AWAITINGAPPROVAL}
            if initial is PipelineStatus.STANDBY:
                expected.add(PipelineStatus.RUNNING)
            what = f"pipeline {self.name!r} to become {initial}"
            self._wait_for_status(expected, what=what, action="START", timeout_s=timeout_s)
