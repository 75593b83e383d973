"""What a host needs of a pipeline's runtime configuration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from airflow_pipelines.common.references import NO_REFERENCES, References
from airflow_pipelines.contract.runtime_config import DevTweaks, RuntimeConfig, Sync
from airflow_pipelines.engine.limits import DEFAULT_LIMITS, Limits
from airflow_pipelines.engine.storage.batch_store import Verification
from airflow_pipelines.engine.storage.checkpoint_retention import Retention
from airflow_pipelines.engine.storage.sync import DEFAULT_PULL_INTERVAL_S, DEFAULT_REGION, SyncConfig
from airflow_pipelines.host.state.clock import ClockOptions
from airflow_pipelines.program.streams import StreamRun

MEGABYTE = 1_000_000
SHORTEST_INTERVAL_S = 1.0
"""Checkpoints of a pipeline are not taken more often than this."""


class FaultTolerance(StrEnum):
    """How much a crash may cost: see the fault-tolerance models of the contract."""

    NONE = "none"
    AT_LEAST_ONCE = "at_least_once"
    EXACTLY_ONCE = "exactly_once"


@dataclass(frozen=True, slots=True)
class RuntimeOptions:
    """A runtime configuration in the types of the host, with its references replaced.

    :param storage: whether anything is kept
    :param workers: by how many the limits of connectors are multiplied that are for each worker
    :param checkpoint_interval_s: seconds between periodic checkpoints, None for none
    :param checkpoint_during_suspend: whether a graceful stop takes a checkpoint
    :param sync: where checkpoints are copied to, None when that is not configured
    :param retention: which copies are kept there
    :param clock: how NOW() moves
    :param limits: the sizes by which the engine chooses between its ways of working
    :param verification: how often batch files are compared with their hashes
    :param variables: the ``env`` of the configuration, which the processes of a stream program have in their environment
    :param memory_limit: bytes of memory that the pipeline may use, which its metrics show; None for no limit
    :param references: what those in connectors stand for: the ``env`` of the configuration, before what the host has
    """

    storage: bool = True
    workers: int = 8
    fault_tolerance: FaultTolerance = FaultTolerance.NONE
    checkpoint_interval_s: float | None = None
    checkpoint_during_suspend: bool = True
    sync: SyncConfig | None = None
    retention: Retention = field(default_factory=Retention)
    clock: ClockOptions = field(default_factory=ClockOptions)
    limits: Limits = DEFAULT_LIMITS
    verification: Verification = Verification.ONCE
    references: References = NO_REFERENCES
    variables: Mapping[str, str] = field(default_factory=dict, repr=False)
    memory_limit: int | None = None

    @classmethod
    def of(cls, config: RuntimeConfig, references: References = NO_REFERENCES) -> RuntimeOptions:
        """The options that a runtime configuration asks for.

        :param config: the configuration of a pipeline
        :param references: what the host has for the references in it
        :raises ReferenceWithoutValueError: when one has no value
        """
        references = references.with_env(config.env)
        model = FaultTolerance(config.fault_tolerance.model)
        interval = config.fault_tolerance.checkpoint_interval_secs
        return cls(
            storage=config.storage is not None,
            workers=config.workers,
            fault_tolerance=model,
            checkpoint_interval_s=None if interval is None or model is FaultTolerance.NONE else float(interval),
            checkpoint_during_suspend=config.checkpoint_during_suspend,
            sync=None if config.sync is None else _sync(config.sync, references),
            retention=Retention() if config.sync is None else _retention(config.sync),
            clock=ClockOptions.of(config),
            limits=_limits(config.dev_tweaks),
            verification=Verification(config.dev_tweaks.verify_batches or Verification.ONCE),
            references=references,
            # By asking for them, so that the log shows none of them.
            variables={name: references.value(f"${{env:{name}}}") for name in config.env},
            memory_limit=_memory_limit(config),
        )

    def completed(self, run: StreamRun) -> RuntimeOptions:
        """The options with a stream program: where no interval of checkpoints is configured, it is that of the program.

        :param run: what the stream program sets for its run
        """
        if self.checkpoint_interval_s is not None or run.checkpoint_interval_ms is None:
            return self
        return replace(self, checkpoint_interval_s=max(SHORTEST_INTERVAL_S, run.checkpoint_interval_ms / 1000))


def _memory_limit(config: RuntimeConfig) -> int | None:
    megabytes = config.max_rss_mb or config.resources.memory_mb_max
    return None if megabytes is None else megabytes * MEGABYTE


def _sync(sync: Sync, references: References) -> SyncConfig:
    def resolved(text: str | None) -> str | None:
        return None if text is None else str(references.resolve(text))

    return SyncConfig(
        bucket=str(references.resolve(sync.bucket)),
        endpoint=resolved(sync.endpoint),
        region=resolved(sync.region) or DEFAULT_REGION,
        access_key=resolved(sync.access_key),
        secret_key=resolved(sync.secret_key),
        read_bucket=resolved(sync.read_bucket),
        start_from_checkpoint=sync.start_from_checkpoint,
        fail_if_no_checkpoint=sync.fail_if_no_checkpoint,
        pull_interval_s=sync.pull_interval or DEFAULT_PULL_INTERVAL_S,
        push_interval_s=sync.push_interval,
        ignore_checksum=bool(sync.ignore_checksum),
    )


def _retention(sync: Sync) -> Retention:
    default = Retention()
    return Retention(
        min_count=default.min_count if sync.retention_min_count is None else sync.retention_min_count,
        min_age_days=default.min_age_days if sync.retention_min_age is None else sync.retention_min_age,
    )


def _limits(tweaks: DevTweaks) -> Limits:
    return replace(DEFAULT_LIMITS, prepared_queries=0) if tweaks.prepared_queries is False else DEFAULT_LIMITS
