"""What a host needs of a pipeline's runtime configuration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from airflow_pipelines.engine.limits import DEFAULT_LIMITS, Limits
from airflow_pipelines.engine.storage.batch_store import Verification
from airflow_pipelines.engine.storage.sync import SyncConfig
from airflow_pipelines.host.clock import ClockOptions
from airflow_pipelines.references import NO_REFERENCES, References


class FaultTolerance(StrEnum):
    """How much a crash may cost: see the fault-tolerance models of the contract."""

    NONE = "none"
    AT_LEAST_ONCE = "at_least_once"
    EXACTLY_ONCE = "exactly_once"


@dataclass(frozen=True, slots=True)
class RuntimeOptions:
    """Typed view of a runtime configuration.

    ``storage``: whether anything is kept. ``checkpoint_interval_s``: seconds between periodic checkpoints, None for none.
    ``sync``: where checkpoints are copied to, None when not configured. ``workers``: scales the default batch size.
    ``clock``: how NOW() moves. ``limits``: the sizes by which the engine chooses between its ways of working.
    ``verification``: how often batch files are compared with their hashes. ``references``: what those in
    connectors stand for: the ``env`` of the configuration, before what the host has.
    """

    storage: bool = True
    fault_tolerance: FaultTolerance = FaultTolerance.NONE
    checkpoint_interval_s: float | None = None
    checkpoint_during_suspend: bool = True
    sync: SyncConfig | None = None
    workers: int = 8
    max_queued_records: int = 1_000_000
    clock: ClockOptions = field(default_factory=ClockOptions)
    limits: Limits = DEFAULT_LIMITS
    verification: Verification = Verification.ONCE
    references: References = NO_REFERENCES

    @classmethod
    def from_wire(cls, config: Mapping[str, Any], references: References = NO_REFERENCES) -> RuntimeOptions:
        """Read a runtime configuration as the service hands it out.

        :param references: what the host has for the references in it
        :raises SyncError, ValueError: when it makes no sense, or a reference has no value
        """
        references = references.with_env(config.get("env") or {})
        storage = config.get("storage", True)
        model, interval = _fault_tolerance(config.get("fault_tolerance"))
        sync = None
        if isinstance(storage, Mapping):
            backend = storage.get("backend") or {}
            wire = (backend.get("config") or {}).get("sync")
            sync = SyncConfig.from_wire(references.resolve(wire)) if wire else None
        return cls(
            storage=storage is not False and storage is not None,
            fault_tolerance=model,
            checkpoint_interval_s=interval if model is not FaultTolerance.NONE else None,
            checkpoint_during_suspend=bool(config.get("checkpoint_during_suspend", True)),
            sync=sync,
            workers=int(config.get("workers") or 8),
            clock=ClockOptions.from_wire(dict(config)),
            limits=_limits(config.get("dev_tweaks") or {}),
            verification=_verification(config.get("dev_tweaks") or {}),
            references=references,
        )


def _limits(tweaks: Mapping[str, Any]) -> Limits:
    prepared = tweaks.get("prepared_queries", True)
    if prepared not in (True, False):
        raise ValueError(f"'dev_tweaks.prepared_queries' is true or false, not {prepared!r}")
    return DEFAULT_LIMITS if prepared else replace(DEFAULT_LIMITS, prepared_queries=0)


def _verification(tweaks: Mapping[str, Any]) -> Verification:
    asked = tweaks.get("verify_batches")
    if asked is None:
        return Verification.ONCE
    try:
        return Verification(asked)
    except ValueError as error:
        raise ValueError(f"'dev_tweaks.verify_batches' is once, always or never, not {asked!r}") from error


def _fault_tolerance(wire: Any) -> tuple[FaultTolerance, float | None]:
    if isinstance(wire, str):
        # The legacy spelling of the model that only takes checkpoints.
        return (FaultTolerance.AT_LEAST_ONCE if wire == "latest_checkpoint" else FaultTolerance(wire)), 60.0
    wire = wire or {}
    model = FaultTolerance(wire.get("model") or "none")
    interval = wire.get("checkpoint_interval_secs", 60)
    return model, None if interval is None else min(max(float(interval), 1.0), 3600.0)
