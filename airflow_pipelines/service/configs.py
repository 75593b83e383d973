"""runtime_config and program_config: checked, filled with defaults, and returned in full."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, TypeVar
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, StrictBool, ValidationError, ValidationInfo, field_validator
from pydantic_core import ErrorDetails

from airflow_pipelines.contract.error_codes import ErrorCode
from airflow_pipelines.contract.problems import Problem
from airflow_pipelines.host.clock import MAX_OFFSET_MS, zone_offset

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

    @field_validator("*", mode="before")
    @classmethod
    def _no_switch_for_a_number(cls, value: Any, info: ValidationInfo) -> Any:
        kind = str(cls.model_fields[info.field_name or ""].annotation)
        if isinstance(value, bool) and ("int" in kind or "float" in kind):
            raise ValueError("must be a number, not true or false")
        return value


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


class Sync(_Config):
    """Where checkpoints are copied to; durations in seconds, ages in days."""

    bucket: str = Field(min_length=1)
    provider: str | None = None
    endpoint: str | None = None
    region: str | None = None
    access_key: str | None = None
    secret_key: str | None = None
    read_bucket: str | None = None
    start_from_checkpoint: str | None = None
    fail_if_no_checkpoint: bool = False
    standby: bool = False
    pull_interval: float | None = Field(default=None, gt=0)
    push_interval: float | None = Field(default=None, gt=0)
    transfers: int | None = Field(default=None, ge=1)
    checkers: int | None = Field(default=None, ge=1)
    ignore_checksum: bool | None = None
    multi_thread_streams: int | None = Field(default=None, ge=1)
    multi_thread_cutoff: str | None = None
    upload_concurrency: int | None = Field(default=None, ge=1)
    flags: list[str] | None = None
    retention_min_count: int | None = Field(default=None, ge=0)
    retention_min_age: float | None = Field(default=None, ge=0)

    @field_validator("start_from_checkpoint")
    @classmethod
    def _names_one(cls, value: str | None) -> str | None:
        if value is not None and value != "latest":
            try:
                UUID(value)
            except ValueError as error:
                raise ValueError("'latest' or the UUID of a checkpoint") from error
        return value


class FileBackend(_Config):
    """Options of the ``file`` backend."""

    sync: Sync | None = None
    async_threads: bool | None = None
    ioop_delay: int | None = Field(default=None, ge=0)


class StorageBackend(_Config):
    """Where state is kept: in files, with options for the ``file`` backend."""

    name: Literal["default", "file"] = "default"
    config: dict[str, Any] | None = None
    """Checked as a :class:`FileBackend`, and kept as it was given: what is left out is not filled in."""


class DevTweaks(BaseModel):
    """The tweaks that have an effect here. Others are let through, because clients send those of other implementations."""

    model_config = ConfigDict(extra="allow")

    now_http_driven: StrictBool | None = None
    now_offset: float | None = Field(default=None, allow_inf_nan=False, ge=-MAX_OFFSET_MS, le=MAX_OFFSET_MS)
    prepared_queries: StrictBool | None = None
    verify_batches: Literal["once", "always", "never"] | None = None


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
    pin_cpus: list[Annotated[int, Field(ge=0)]] = Field(default_factory=list)
    provisioning_timeout_secs: int | None = Field(default=None, gt=0)
    max_parallel_connector_init: int | None = Field(default=None, ge=1)
    init_containers: Any = None
    checkpoint_during_suspend: bool = True
    http_workers: int | None = Field(default=None, ge=1)
    io_workers: int | None = Field(default=None, ge=1)
    dev_tweaks: dict[str, Any] = Field(default_factory=dict)
    """Checked as :class:`DevTweaks`."""
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

    @field_validator("clock_timezone_offset")
    @classmethod
    def _is_an_offset(cls, value: str | None) -> str | None:
        zone_offset(value)
        return value

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
    config = _checked(RuntimeConfig, value, ErrorCode.INVALID_RUNTIME_CONFIG, "runtime_config")
    filled = config.model_dump(mode="json")
    storage = filled["storage"]
    if storage is not None and storage["backend"]["config"] is None:
        del storage["backend"]["config"]
    return filled


def program_config(value: Any, platform_version: str) -> dict[str, Any]:
    """``value`` checked and filled; None means all defaults. Raises the contract's InvalidProgramConfig."""
    config = _checked(ProgramConfig, value, ErrorCode.INVALID_PROGRAM_CONFIG, "program_config")
    if config.runtime_version not in {None, platform_version}:
        raise Problem(
            ErrorCode.INVALID_PROGRAM_CONFIG,
            f"program_config.runtime_version '{config.runtime_version}' is not available: leave it out, "
            f"because this service runs {platform_version} only",
        )
    return config.model_dump(mode="json")


_INNER: Final[Mapping[tuple[type[BaseModel], str], type[BaseModel]]] = {
    (RuntimeConfig, "storage"): Storage,
    (Storage, "backend"): StorageBackend,
    (StorageBackend, "config"): FileBackend,
    (FileBackend, "sync"): Sync,
    (RuntimeConfig, "fault_tolerance"): FaultTolerance,
    (RuntimeConfig, "resources"): Resources,
    (RuntimeConfig, "dev_tweaks"): DevTweaks,
}
"""By which model a field of a model is checked."""
_KEPT_AS_GIVEN: Final = (("storage.backend.config", FileBackend), ("dev_tweaks", DevTweaks))
"""Parts of a runtime configuration that are checked by a model of their own and not filled with its defaults."""


def fields_of(model: type[BaseModel], prefix: str = "") -> list[str]:
    """The paths of all fields of a model that hold values, with dots between the names."""
    paths = []
    for name in model.model_fields:
        inner = _INNER.get((model, name))
        paths += [f"{prefix}{name}"] if inner is None else fields_of(inner, f"{prefix}{name}.")
    return paths


def _checked(model: type[C], value: Any, code: ErrorCode, what: str) -> C:
    if value is not None and not isinstance(value, Mapping):
        raise Problem(code, f"{what} must be a JSON object, not {type(value).__name__}")
    given = {} if value is None else dict(value)
    found: list[ErrorDetails] = []
    config: C | None = None
    try:
        config = model.model_validate(given)
    except ValidationError as error:
        found += _errors(error, "")
    for path, inner in _KEPT_AS_GIVEN if model is RuntimeConfig else ():
        part = at(given, path)
        if isinstance(part, Mapping):
            try:
                inner.model_validate(dict(part))
            except ValidationError as error:
                found += _errors(error, f"{path}.")
    if found or config is None:
        text = "; ".join(_described(model, item) for item in found)
        raise Problem(code, f"Invalid {what}: {text}", {"errors": [_path(item) for item in found]})
    return config


def at(config: Any, path: str) -> Any:
    """The value at a path of a configuration; None where there is none."""
    for name in path.split("."):
        if not isinstance(config, Mapping):
            return None
        config = config.get(name)
    return config


def _errors(error: ValidationError, prefix: str) -> list[ErrorDetails]:
    # The value itself stays out of messages: ``env`` and ``storage`` may hold secrets.
    found = error.errors(include_url=False, include_input=False)
    return [{**item, "loc": (*prefix.split(".")[:-1], *item["loc"])} for item in found]


def _path(item: ErrorDetails) -> str:
    return ".".join(str(part) for part in item["loc"])


def _described(model: type[BaseModel], item: ErrorDetails) -> str:
    if item["type"] != "extra_forbidden":
        return f"{_path(item)}: {item['msg']}"
    beside: type[BaseModel] | None = model
    for name in item["loc"][:-1]:
        beside = None if beside is None else _INNER.get((beside, str(name)))
    known = "" if beside is None else f"; known: {', '.join(sorted(beside.model_fields))}"
    return f"{_path(item)}: unknown key{known}"
