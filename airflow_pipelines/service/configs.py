"""runtime_config and program_config: checked, filled with defaults, and returned in full."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, ValidationInfo, field_validator

from airflow_pipelines.host.problems import Problem

RESERVED_ENVIRONMENT: Final = frozenset(
    {
        "RUST_LOG", "TOKIO_WORKER_THREADS", "AWS_LC_SYS_CMAKE_BUILDER", "RUST_BACKTRACE",
        "JAVA_HOME", "SPARK_HOME", "PATH", "PYTHONPATH", "PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON",
    }
)  # fmt: skip
"""Environment names that ``env`` may not set, because hosts depend on them. So may none beginning with ``AIRFLOW_PIPELINES_``."""

STORAGE_DEFAULTS: Final[dict[str, Any]] = {
    "backend": {"name": "default"},
    "min_storage_bytes": None,
    "min_step_storage_bytes": None,
    "compression": "default",
    "cache_mib": None,
}


C = TypeVar("C", bound=BaseModel)


class _Config(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=False)


class Resources(_Config):
    """What one incarnation may use: cores in CPUs, memory and storage in megabytes."""

    cpu_cores_min: float | None = Field(default=None, ge=0)
    cpu_cores_max: float | None = Field(default=None, gt=0)
    memory_mb_min: int | None = Field(default=None, ge=0)
    memory_mb_max: int | None = Field(default=None, gt=0)
    storage_mb_max: int | None = Field(default=None, ge=0)
    storage_class: str | None = None
    service_account_name: str | None = None
    namespace: str | None = None


class StorageBackend(_Config):
    """Where state is kept: ``default`` or ``file``, the latter with options of its own."""

    model_config = ConfigDict(extra="forbid")

    name: Literal["default", "file", "object"] = "default"
    config: dict[str, Any] | None = None


class Storage(_Config):
    """Options of the pipeline's storage."""

    backend: StorageBackend = Field(default_factory=StorageBackend)
    min_storage_bytes: int | None = Field(default=None, ge=0)
    min_step_storage_bytes: int | None = Field(default=None, ge=0)
    compression: Literal["default", "none", "snappy", "zstd"] = "default"
    cache_mib: int | None = Field(default=None, ge=0)


class FaultTolerance(_Config):
    """How much a crash may cost. ``checkpoint_interval_secs`` None means no periodic checkpoints."""

    model: Literal["none", "at_least_once", "exactly_once"] = "none"
    checkpoint_interval_secs: int | None = 60

    @field_validator("model", mode="before")
    @classmethod
    def _no_model(cls, value: Any) -> Any:
        return "none" if value is None else value

    @field_validator("checkpoint_interval_secs")
    @classmethod
    def _clamp(cls, value: int | None) -> int | None:
        return None if value is None else min(max(value, 1), 3600)


class RuntimeConfig(_Config):
    """All settings of an incarnation with their defaults."""

    workers: int = Field(default=8, ge=1)
    hosts: int = Field(default=1, ge=1)
    storage: Storage | None = Field(default_factory=Storage)
    fault_tolerance: FaultTolerance = Field(default_factory=FaultTolerance)
    cpu_profiler: bool = True
    tracing: bool = False
    tracing_endpoint_jaeger: str = "127.0.0.1:6831"
    min_batch_size_records: int = Field(default=0, ge=0)
    max_buffering_delay_usecs: int = Field(default=0, ge=0)
    resources: Resources = Field(default_factory=Resources)
    clock_resolution_usecs: int | None = Field(default=1_000_000, gt=0)
    clock_timezone_offset: str | None = None
    pin_cpus: list[int] = Field(default_factory=list)
    provisioning_timeout_secs: int | None = Field(default=None, gt=0)
    max_parallel_connector_init: int | None = Field(default=None, ge=1)
    init_containers: Any = None
    checkpoint_during_suspend: bool = True
    http_workers: int | None = Field(default=None, ge=1)
    io_workers: int | None = Field(default=None, ge=1)
    dev_tweaks: dict[str, Any] = Field(default_factory=dict)
    env: dict[str, str] = Field(default_factory=dict)
    logging: str | None = None
    pipeline_template_configmap: Any = None
    datafusion_memory_mb: int | None = Field(default=None, ge=1)
    max_rss_mb: int | None = Field(default=None, ge=1)

    @field_validator("storage", mode="before")
    @classmethod
    def _storage_switch(cls, value: Any) -> Any:
        if value is True:
            return {}
        return None if value is False else value

    @field_validator("fault_tolerance", mode="before")
    @classmethod
    def _legacy_fault_tolerance(cls, value: Any) -> Any:
        if value is None:
            return {}
        if value == "latest_checkpoint":
            return {"model": "exactly_once"}
        return {"model": value} if isinstance(value, str) else value

    @field_validator("resources", "dev_tweaks", "env", "pin_cpus", mode="before")
    @classmethod
    def _null_is_default(cls, value: Any, info: ValidationInfo) -> Any:
        if value is not None:
            return value
        return [] if info.field_name == "pin_cpus" else {}

    @field_validator("env")
    @classmethod
    def _no_reserved_names(cls, value: dict[str, str]) -> dict[str, str]:
        reserved = sorted(name for name in value if name in RESERVED_ENVIRONMENT or name.startswith("AIRFLOW_PIPELINES_"))
        if reserved:
            raise ValueError(f"reserved names {', '.join(reserved)}: choose others")
        return value


class ProgramConfig(_Config):
    """How the program is compiled."""

    profile: Literal["dev", "unoptimized", "optimized", "optimized_symbols"] | None = None
    cache: bool = True
    runtime_version: str | None = None
    use_platform_compiler: bool = False


def runtime_config(value: Any) -> dict[str, Any]:
    """``value`` checked and filled; None means all defaults. Raises the contract's InvalidRuntimeConfig."""
    config = _checked(RuntimeConfig, value, "InvalidRuntimeConfig", "runtime_config")
    filled = config.model_dump(mode="json")
    storage = filled["storage"]
    if storage is not None and storage["backend"]["config"] is None:
        del storage["backend"]["config"]
    return filled


def program_config(value: Any, platform_version: str) -> dict[str, Any]:
    """``value`` checked and filled; None means all defaults. Raises the contract's InvalidProgramConfig."""
    config = _checked(ProgramConfig, value, "InvalidProgramConfig", "program_config")
    if config.runtime_version not in {None, platform_version}:
        raise Problem(
            400,
            "InvalidProgramConfig",
            f"program_config.runtime_version '{config.runtime_version}' is not available: leave it out, "
            f"because this service runs {platform_version} only",
        )
    return config.model_dump(mode="json")


def _checked(model: type[C], value: Any, code: str, what: str) -> C:
    if value is not None and not isinstance(value, Mapping):
        raise Problem(400, code, f"{what} must be a JSON object, not {type(value).__name__}")
    try:
        return model.model_validate({} if value is None else dict(value))
    except ValidationError as error:
        # The value itself stays out of the message: ``env`` and ``storage`` may hold secrets.
        found = [
            (".".join(str(part) for part in item["loc"]), item["msg"], item["type"])
            for item in error.errors(include_url=False, include_input=False)
        ]
        unknown = [name for name, _, kind in found if kind == "extra_forbidden"]
        texts = [f"{name}: {message}" for name, message, kind in found if kind != "extra_forbidden"]
        if unknown:
            known = ", ".join(sorted(model.model_fields))
            texts.append(f"unknown keys {', '.join(unknown)} (known at the top level: {known})")
        raise Problem(400, code, f"Invalid {what}: " + "; ".join(texts), {"errors": [name for name, _, _ in found]}) from error
