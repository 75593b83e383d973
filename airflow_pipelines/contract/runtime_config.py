"""The runtime configuration: its fields with their defaults, bounds and effects. The service fills it in, a host reads it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Final, Literal, Self
from uuid import UUID

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ModelWrapValidatorHandler,
    PrivateAttr,
    StrictBool,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_serializer,
    model_validator,
)

from airflow_pipelines.contract.validation import mistakes, section_of

RESERVED_ENVIRONMENT: Final = frozenset(
    {
        "RUST_LOG", "TOKIO_WORKER_THREADS", "AWS_LC_SYS_CMAKE_BUILDER", "RUST_BACKTRACE",
        "JAVA_HOME", "SPARK_HOME", "PATH", "PYTHONPATH", "PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON",
    }
)  # fmt: skip
"""Environment names that ``env`` may not set, because hosts depend on them.

Names that begin with ``AIRFLOW_PIPELINES_`` are reserved too.
"""

LATEST: Final = "latest"
"""The value of ``start_from_checkpoint`` that stands for the newest checkpoint of a bucket."""
LEGACY_FAULT_TOLERANCE: Final = "latest_checkpoint"
"""The single word that older clients send as ``fault_tolerance``. It stands for the model ``exactly_once``."""
MAX_OFFSET_MS: Final = 100 * 366 * 24 * 3600 * 1000
"""The maximum shift of a clock, a hundred years: far enough for any test, and still a valid time."""
_OFFSET: Final = re.compile(r"([+-])(\d{1,2}):?(\d{2})")
_MICROSECONDS: Final = 1_000_000
_NOW_OFFSET: Final = "must be a number of milliseconds, or a time in RFC 3339 form, such as 2024-02-29T12:00:00Z"


@dataclass(frozen=True, slots=True)
class Effect:
    """The effect of a field here; if ``active`` is False, the reason why it has none. An annotation of the field."""

    text: str
    active: bool = True


def _inactive(reason: str) -> Effect:
    return Effect(reason, active=False)


_MEMORY: Final = Field(pattern=r"^[1-9][0-9]*[kmgt]$")
_DECIDED: Final = frozenset({"spark.app.name", "spark.master", "spark.submit.deployMode"})
"""The properties that name the pipeline or are fixed by the connection."""
_TRANSFER: Final = _inactive("copies are made by fsspec, which chooses how it transfers files")
_CLUSTER: Final = _inactive("no host runs in a cluster that knows this; use a Spark connection")
_SPARK_THREADS: Final = _inactive("Spark chooses its own threads; 'resources.cpu_cores_max' limits them on a dedicated host")
_BY_ROWS: Final = _inactive("the engine chooses by the number of rows what it keeps in memory and what in files")
_NOT_RESERVED: Final = _inactive("nothing is reserved: a host takes what it needs up to its limit")
_NO_TRACES: Final = _inactive("no traces are sent; Spark's own interface shows a host's jobs")
_NO_WAIT: Final = _inactive("a step takes what has come in when the step before is done, and never waits for more")


def _now_offset(value: Any) -> float | datetime | None:
    """Parse a number of milliseconds, or a time in RFC 3339 form."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError(_NOW_OFFSET)  # noqa: TRY004  pydantic names the field of no other error
    try:
        milliseconds = float(value)
    except ValueError:
        return _rfc3339(str(value))
    if not abs(milliseconds) <= MAX_OFFSET_MS:
        raise ValueError(f"must be at most {MAX_OFFSET_MS} milliseconds in either direction")
    return milliseconds


def _rfc3339(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise ValueError(_NOW_OFFSET) from error
    if moment.tzinfo is None:
        raise ValueError(_NOW_OFFSET)
    return moment


class _Section(BaseModel):
    """A part of a runtime configuration. Unknown keys are rejected, unless a stored configuration is read."""

    model_config = ConfigDict(extra="forbid", strict=False)

    @field_validator("*", mode="before")
    @classmethod
    def _no_switch_for_a_number(cls, value: Any, info: ValidationInfo) -> Any:
        kind = str(cls.model_fields[info.field_name or ""].annotation)
        if isinstance(value, bool) and ("int" in kind or "float" in kind):
            raise ValueError("must be a number, not true or false")
        return value


class _AsGiven(BaseModel):
    """A part that is stored and answered exactly as given: no defaults are filled in, and nothing is converted."""

    _given: dict[str, Any] = PrivateAttr(default_factory=dict)

    @model_validator(mode="wrap")
    @classmethod
    def _remember(cls, value: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        checked = handler(value)
        if isinstance(value, Mapping):
            checked._given = dict(value)
        return checked

    @model_serializer
    def _as_given(self) -> dict[str, Any]:
        return self._given


class Resources(_Section):
    """The resource limits of one incarnation: cores in CPUs, memory and storage in megabytes."""

    cpu_cores_min: Annotated[float | None, _NOT_RESERVED] = Field(default=None, ge=0)
    cpu_cores_max: Annotated[
        float | None, Effect("cores of a dedicated host; no effect on the shared host, which all pipelines use")
    ] = Field(default=None, gt=0)
    memory_mb_min: Annotated[int | None, _NOT_RESERVED] = Field(default=None, ge=0)
    memory_mb_max: Annotated[
        int | None, Effect("memory of a dedicated host's driver; no effect on the shared host, which all pipelines use")
    ] = Field(default=None, gt=0)
    storage_mb_max: Annotated[int | None, _inactive("storage is not limited; the file system's own quota can do that")] = Field(
        default=None, ge=0
    )
    storage_class: Annotated[str | None, _CLUSTER] = None
    service_account_name: Annotated[str | None, _CLUSTER] = None
    namespace: Annotated[str | None, _CLUSTER] = None


class Sync(_Section):
    """The settings for copying checkpoints; durations in seconds, ages in days."""

    bucket: Annotated[
        str, Effect("where checkpoints are copied to: `name/prefix` in S3, a URL of fsspec, or a folder"), Field(min_length=1)
    ]
    provider: Annotated[str | None, _inactive("fsspec speaks S3 to all of them")] = None
    endpoint: Annotated[str | None, Effect("address of an S3 service other than Amazon's")] = None
    region: Annotated[str | None, Effect("region of the bucket; default us-east-1")] = None
    access_key: Annotated[str | None, Effect("key to the bucket; better as `${secret:NAME}`")] = Field(default=None, repr=False)
    secret_key: Annotated[str | None, Effect("its secret; better as `${secret:NAME}`")] = Field(default=None, repr=False)
    read_bucket: Annotated[str | None, Effect("a second place to look for the checkpoint to start from")] = None
    start_from_checkpoint: Annotated[str | None, Effect("`latest` or a checkpoint's id: what to start from")] = None
    fail_if_no_checkpoint: Annotated[
        bool, Effect("the start fails when there is no such checkpoint, instead of starting empty")
    ] = False
    standby: Annotated[bool, _inactive("start the pipeline with `initial=standby` instead")] = False
    pull_interval: Annotated[
        float | None, Effect("seconds between two looks for a newer checkpoint while the pipeline is in standby; default 10")
    ] = Field(default=None, gt=0)
    push_interval: Annotated[
        float | None, Effect("seconds after which a new checkpoint is copied by itself; null copies when asked only")
    ] = Field(default=None, gt=0)
    transfers: Annotated[int | None, _TRANSFER] = Field(default=None, ge=1)
    checkers: Annotated[int | None, _TRANSFER] = Field(default=None, ge=1)
    ignore_checksum: Annotated[bool | None, Effect("true: copies that are there are compared by size only, not by their hash")] = (
        None
    )
    multi_thread_streams: Annotated[int | None, _TRANSFER] = Field(default=None, ge=1)
    multi_thread_cutoff: Annotated[str | None, _TRANSFER] = None
    upload_concurrency: Annotated[int | None, _TRANSFER] = Field(default=None, ge=1)
    flags: Annotated[list[str] | None, _TRANSFER] = None
    retention_min_count: Annotated[int | None, Effect("so many of the newest copies are kept, whatever their age; default 10")] = (
        Field(default=None, ge=0)
    )
    retention_min_age: Annotated[
        float | None,
        Effect("copies of so many days are kept, however many they are; default 30. A sync removes what neither keeps"),
    ] = Field(default=None, ge=0)

    @field_validator("start_from_checkpoint")
    @classmethod
    def _names_a_checkpoint(cls, value: str | None) -> str | None:
        if value is not None and value != LATEST:
            try:
                UUID(value)
            except ValueError as error:
                raise ValueError("'latest' or the UUID of a checkpoint") from error
        return value


class FileBackend(_Section, _AsGiven):
    """The options of the ``file`` backend."""

    sync: Sync | None = None
    async_threads: Annotated[bool | None, _inactive("the engine reads and writes in threads of its own")] = None
    ioop_delay: Annotated[int | None, _inactive("a means of testing other implementations")] = Field(default=None, ge=0)


class StorageBackend(_Section):
    """The place of the state: files, with options for the ``file`` backend."""

    name: Annotated[
        Literal["default", "file"], Effect("`default` and `file` both keep the state in files of the pipeline's storage folder")
    ] = "default"
    config: FileBackend | None = None


class DevTweaks(_AsGiven):
    """The tweaks that have an effect here. Others are accepted, because clients send those of other implementations."""

    model_config = ConfigDict(extra="allow")

    now_http_driven: Annotated[StrictBool | None, Effect("true: the clock stands still but for requests that move it")] = None
    now_offset: Annotated[
        float | datetime | None,
        BeforeValidator(_now_offset),
        Effect("milliseconds that are added to the clock, or the time in RFC 3339 form at which it starts"),
    ] = None
    prepared_queries: Annotated[StrictBool | None, Effect("false: every small query of a step is planned anew")] = None
    verify_batches: Annotated[
        Literal["once", "always", "never"] | None,
        Effect("`once`, `always`, `never`: how often files of the state are compared with their hashes"),
    ] = None

    def unknown(self) -> list[str]:
        """Return the given names that have no effect here."""
        return [name for name in self._given if name not in type(self).model_fields]


class Storage(_Section):
    """The options of the pipeline's storage."""

    backend: StorageBackend = Field(default_factory=StorageBackend)
    min_storage_bytes: Annotated[int | None, _BY_ROWS] = Field(default=None, ge=0)
    min_step_storage_bytes: Annotated[int | None, _BY_ROWS] = Field(default=None, ge=0)
    compression: Annotated[
        Literal["default", "none", "snappy", "zstd"],
        _inactive("files are always compressed with LZ4: most are read once or twice before they are merged"),
    ] = "default"
    cache_mib: Annotated[int | None, _inactive("files are read through the operating system's cache")] = Field(default=None, ge=0)


class FaultTolerance(_Section):
    """The guarantee after a crash. ``checkpoint_interval_secs`` None means no periodic checkpoints."""

    model: Annotated[
        Literal["none", "at_least_once", "exactly_once"],
        Effect("`none`, `at_least_once`, `exactly_once`: see the Python SDK's page, Waiting"),
    ] = "none"
    checkpoint_interval_secs: Annotated[
        int | None,
        Effect(
            "seconds between checkpoints, with a model other than `none`; null: none. "
            "Less than 1 counts as 1, more than 3600 as 3600"
        ),
    ] = 60

    @field_validator("model", mode="before")
    @classmethod
    def _no_model(cls, value: Any) -> Any:
        return "none" if value is None else value

    @field_validator("checkpoint_interval_secs")
    @classmethod
    def _clamp(cls, value: int | None) -> int | None:
        return None if value is None else min(max(value, 1), 3600)


class SparkSettings(_Section):
    """The Spark application of a pipeline with a dedicated host; an extension of the contract, left out if it is not given."""

    conf: Annotated[
        dict[str, str],
        Effect("Spark properties of a dedicated host; no effect on the shared one. They are shown: no place for secrets"),
    ] = Field(default_factory=dict)
    packages: Annotated[list[str], Effect("Maven coordinates of what a dedicated host loads (`spark.jars.packages`)")] = Field(
        default_factory=list
    )
    image: Annotated[str | None, Effect("container image of a dedicated host on Kubernetes, driver and executors")] = None
    driver_memory: Annotated[
        str | None, Effect("memory of a dedicated host's driver, such as `4g`; `resources.memory_mb_max` wins over it"), _MEMORY
    ] = None
    executor_memory: Annotated[str | None, Effect("memory of each executor of a dedicated host, such as `4g`"), _MEMORY] = None

    @field_validator("conf")
    @classmethod
    def _not_what_the_service_decides(cls, value: dict[str, str]) -> dict[str, str]:
        for name in value:
            if not name.startswith("spark.") or name in _DECIDED:
                raise ValueError(f"'{name}' is no Spark property that a pipeline can set")
        return value


class RuntimeConfig(_Section):
    """All settings of an incarnation."""

    workers: Annotated[int, Effect("number of Spark's shuffle partitions on a dedicated host; no effect on the shared one")] = (
        Field(default=8, ge=1)
    )
    hosts: Annotated[int, _inactive("a pipeline runs in one Spark application, whose executors are Spark's affair")] = Field(
        default=1, ge=1
    )
    storage: Annotated[Storage | None, Effect("false or null keeps nothing: no checkpoint, no graceful stop")] = Field(
        default_factory=Storage
    )
    fault_tolerance: FaultTolerance = Field(default_factory=FaultTolerance)
    cpu_profiler: Annotated[bool, _inactive("figures of each operator are always kept (`steps`), and cost nothing to speak of")] = (
        True
    )
    tracing: Annotated[bool, _NO_TRACES] = False
    tracing_endpoint_jaeger: Annotated[str, _NO_TRACES] = "127.0.0.1:6831"
    min_batch_size_records: Annotated[int, _NO_WAIT] = Field(default=0, ge=0)
    max_buffering_delay_usecs: Annotated[int, _NO_WAIT] = Field(default=0, ge=0)
    resources: Resources = Field(default_factory=Resources)
    clock_resolution_usecs: Annotated[int | None, Effect("how often NOW() moves, in microseconds")] = Field(
        default=_MICROSECONDS, gt=0
    )
    clock_timezone_offset: Annotated[str | None, Effect("what is added to the time in UTC for NOW(), such as `+02:00`")] = None
    pin_cpus: Annotated[list[Annotated[int, Field(ge=0)]], _inactive("Spark's tasks are placed by the operating system")] = Field(
        default_factory=list
    )
    provisioning_timeout_secs: Annotated[
        int | None, Effect("seconds after which a start fails whose host has not come up; default 600")
    ] = Field(default=None, gt=0)
    max_parallel_connector_init: Annotated[
        int | None, _inactive("connectors open in threads of their own while the pipeline runs")
    ] = Field(default=None, ge=1)
    init_containers: Annotated[Any, _CLUSTER] = None
    checkpoint_during_suspend: Annotated[
        bool, Effect("false: a graceful stop takes no checkpoint and loses what came after the last")
    ] = True
    http_workers: Annotated[int | None, _SPARK_THREADS] = Field(default=None, ge=1)
    io_workers: Annotated[int | None, _SPARK_THREADS] = Field(default=None, ge=1)
    dev_tweaks: DevTweaks = Field(default_factory=DevTweaks)
    env: Annotated[
        dict[str, str],
        Effect(
            "what `${env:NAME}` in connectors stands for, before what `connector_env` lets through, and environment variables of "
            "stream programs; values that look like [secrets](security.md#secrets) are kept as such"
        ),
    ] = Field(default_factory=dict, repr=False)
    logging: Annotated[str | None, _inactive("a pipeline's log has one level")] = None
    pipeline_template_configmap: Annotated[Any, _CLUSTER] = None
    datafusion_memory_mb: Annotated[int | None, _inactive("ad-hoc queries run on Spark, in the memory of the host")] = Field(
        default=None, ge=1
    )
    spark: SparkSettings | None = None
    max_rss_mb: Annotated[
        int | None, _inactive("a host's memory is limited by Spark's settings; see 'resources.memory_mb_max'")
    ] = Field(default=None, ge=1)

    @classmethod
    def from_stored(cls, wire: Mapping[str, Any]) -> Self:
        """Read a configuration that a service stored, perhaps one of another release: unknown fields are ignored.

        :param wire: the configuration in wire form
        :returns: the configuration, with defaults for missing fields
        :raises ValueError: when a value is invalid, which an earlier release did not check
        """
        given = {name: value for name, value in wire.items() if value is not None or name in _NULLABLE}
        try:
            return cls.model_validate(given, extra="ignore")
        except ValidationError as error:
            raise ValueError("; ".join(each.text for each in mistakes(cls, error))) from None

    def to_wire(self) -> dict[str, Any]:
        """Return the complete configuration, as it is stored and answered.

        :returns: a JSON value
        """
        wire = self.model_dump(mode="json")
        if wire["spark"] is None:
            # Only where it is given: the other keys are the contract's.
            del wire["spark"]
        storage = wire["storage"]
        if storage is not None and storage["backend"]["config"] is None:
            del storage["backend"]["config"]
        return wire

    @property
    def sync(self) -> Sync | None:
        """The settings for copying checkpoints; None if they are not configured."""
        backend = None if self.storage is None else self.storage.backend.config
        return None if backend is None else backend.sync

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
        if value == LEGACY_FAULT_TOLERANCE:
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
        zone_offset_us(value)
        return value

    @field_validator("env")
    @classmethod
    def _no_reserved_names(cls, value: dict[str, str]) -> dict[str, str]:
        reserved = sorted(name for name in value if name in RESERVED_ENVIRONMENT or name.startswith("AIRFLOW_PIPELINES_"))
        if reserved:
            raise ValueError(f"reserved names {', '.join(reserved)}: choose others")
        return value


_NULLABLE: Final = frozenset({"storage"} | {name for name, field in RuntimeConfig.model_fields.items() if field.default is None})
"""The fields for which null is a value of its own and does not stand for the default."""


def effects(model: type[BaseModel] = RuntimeConfig, prefix: str = "") -> Iterator[tuple[str, Effect]]:
    """Yield the effect of each field of a configuration.

    :param model: the configuration, or a section of it
    :param prefix: the path of the section, with a dot at its end
    :returns: the paths of the fields with their effects, in the order of the fields
    """
    for name, field in model.model_fields.items():
        yield from ((f"{prefix}{name}", each) for each in field.metadata if isinstance(each, Effect))
        section = section_of(field)
        if section is not None:
            yield from effects(section, f"{prefix}{name}.")


def zone_offset_us(text: str | None) -> int:
    """Return an offset from UTC in microseconds.

    :param text: the offset, such as ``+02:00``; None, empty, ``Z`` and ``UTC`` are zero
    :raises ValueError: when it is anything else
    """
    if text in (None, "", "Z", "UTC"):
        return 0
    match = _OFFSET.fullmatch(str(text).strip())
    if match is None or int(match[2]) > 18 or int(match[3]) > 59:
        raise ValueError(f"'clock_timezone_offset' is an offset such as '+02:00', not {text!r}")
    minutes = int(match[2]) * 60 + int(match[3])
    return (minutes if match[1] == "+" else -minutes) * 60 * _MICROSECONDS
