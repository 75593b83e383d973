"""The part of a pipeline's runtime configuration that a host needs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from airflow_pipelines.common.references import NO_REFERENCES, References
from airflow_pipelines.contract.error_codes import ErrorCode
from airflow_pipelines.contract.problems import Problem
from airflow_pipelines.contract.runtime_config import DevTweaks, RuntimeConfig, Sync
from airflow_pipelines.contract.statuses import CrashGuarantee
from airflow_pipelines.engine.limits import DEFAULT_LIMITS, Limits
from airflow_pipelines.engine.storage.batch_store import Verification
from airflow_pipelines.engine.storage.checkpoint_retention import CheckpointRetention
from airflow_pipelines.engine.storage.sync import DEFAULT_PULL_INTERVAL_S, DEFAULT_REGION, SyncConfig
from airflow_pipelines.host.state.clock import ClockOptions
from airflow_pipelines.program.streams import StreamRun

MEGABYTE = 1_000_000
SHORTEST_INTERVAL_S = 1.0
"""The shortest interval of checkpoints that a stream program can set."""


@dataclass(frozen=True, slots=True)
class RuntimeOptions:
    """A runtime configuration in the types of the host, with its references replaced.

    :param storage: True if state is kept
    :param workers: the factor for those limits of connectors that apply to each worker
    :param checkpoint_interval_s: the seconds between periodic checkpoints, or None for none
    :param checkpoint_during_suspend: True if a graceful stop takes a checkpoint
    :param sync: the target of copies of checkpoints, or None if none is configured
    :param retention: the retention of these copies
    :param clock: the options of the clock for NOW()
    :param limits: the sizes by which the engine chooses between its strategies
    :param verification: the frequency with which batch files are compared with their hashes
    :param variables: the ``env`` of the configuration, which the processes of a stream program have in their environment
    :param memory_limit: the bytes of memory that the pipeline may use, which its metrics show; None for no limit
    :param references: the values of references in connectors: the ``env`` of the configuration, before the values of the host
    """

    storage: bool = True
    workers: int = 8
    fault_tolerance: CrashGuarantee = CrashGuarantee.NONE
    checkpoint_interval_s: float | None = None
    checkpoint_during_suspend: bool = True
    sync: SyncConfig | None = None
    retention: CheckpointRetention = field(default_factory=CheckpointRetention)
    clock: ClockOptions = field(default_factory=ClockOptions)
    limits: Limits = DEFAULT_LIMITS
    verification: Verification = Verification.ONCE
    references: References = NO_REFERENCES
    variables: Mapping[str, str] = field(default_factory=dict, repr=False)
    memory_limit: int | None = None

    @classmethod
    def of(cls, config: RuntimeConfig, references: References = NO_REFERENCES) -> RuntimeOptions:
        """Return the options of a runtime configuration.

        :param config: the configuration of a pipeline
        :param references: the host's values for the references in it
        :raises ReferenceWithoutValueError: if a reference has no value
        """
        references = references.with_env(config.env)
        model = CrashGuarantee(config.fault_tolerance.model)
        interval = config.fault_tolerance.checkpoint_interval_secs
        return cls(
            storage=config.storage is not None,
            workers=config.workers,
            fault_tolerance=model,
            checkpoint_interval_s=None if interval is None or model is CrashGuarantee.NONE else float(interval),
            checkpoint_during_suspend=config.checkpoint_during_suspend,
            sync=None if config.sync is None else _sync(config.sync, references),
            retention=CheckpointRetention() if config.sync is None else _retention(config.sync),
            clock=ClockOptions.of(config),
            limits=_limits(config.dev_tweaks),
            verification=Verification(config.dev_tweaks.verify_batches or Verification.ONCE),
            references=references,
            # Read through the references, so that the log redacts the values.
            variables={name: references.value(f"${{env:{name}}}") for name in config.env},
            memory_limit=_memory_limit(config),
        )

    def require_storage(self) -> None:
        """Refuse operations that need storage if there is none.

        :raises Problem: if storage is switched off
        """
        if not self.storage:
            raise Problem(
                ErrorCode.STORAGE_REQUIRED,
                "Checkpoints and a graceful stop need storage, which is switched off for this pipeline ('storage': false). "
                "Stop it with force, or switch storage on.",
            )

    def completed(self, run: StreamRun) -> RuntimeOptions:
        """Return the options with the stream program's checkpoint interval, unless an interval is configured.

        :param run: the settings of the stream program for its run
        """
        if self.checkpoint_interval_s is not None or run.checkpoint_interval_ms is None:
            return self
        return replace(self, checkpoint_interval_s=max(SHORTEST_INTERVAL_S, run.checkpoint_interval_ms / 1000))


def _memory_limit(config: RuntimeConfig) -> int | None:
    megabytes = config.max_rss_mb or config.resources.memory_mb_max
    return None if megabytes is None else megabytes * MEGABYTE


def _sync(sync: Sync, references: References) -> SyncConfig:
    def resolve_text(text: str | None) -> str | None:
        return None if text is None else str(references.resolve(text))

    return SyncConfig(
        bucket=str(references.resolve(sync.bucket)),
        endpoint=resolve_text(sync.endpoint),
        region=resolve_text(sync.region) or DEFAULT_REGION,
        access_key=resolve_text(sync.access_key),
        secret_key=resolve_text(sync.secret_key),
        read_bucket=resolve_text(sync.read_bucket),
        start_from_checkpoint=sync.start_from_checkpoint,
        fail_if_no_checkpoint=sync.fail_if_no_checkpoint,
        pull_interval_s=sync.pull_interval or DEFAULT_PULL_INTERVAL_S,
        push_interval_s=sync.push_interval,
        ignore_checksum=bool(sync.ignore_checksum),
    )


def _retention(sync: Sync) -> CheckpointRetention:
    default = CheckpointRetention()
    return CheckpointRetention(
        min_count=default.min_count if sync.retention_min_count is None else sync.retention_min_count,
        min_age_days=default.min_age_days if sync.retention_min_age is None else sync.retention_min_age,
    )


def _limits(tweaks: DevTweaks) -> Limits:
    return (
        replace(DEFAULT_LIMITS, plans=replace(DEFAULT_LIMITS.plans, queries=0))
        if tweaks.prepared_queries is False
        else DEFAULT_LIMITS
    )
