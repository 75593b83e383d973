"""The runtime configuration in a Python program: values that are set are sent, all others are left to the service.

The fields, their defaults, bounds and effects are those of :class:`airflow_pipelines.contract.runtime_config.RuntimeConfig`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Self

from airflow_pipelines.contract.enums import FaultToleranceModel


class Resources:
    """The limits of a pipeline's use of its cluster.

    :param config: the values by wire name, as one mapping; the other arguments take precedence over it
    :param cpu_cores_max: maximum number of CPU cores
    :param cpu_cores_min: minimum number of CPU cores
    :param memory_mb_max: maximum memory, in megabytes
    :param memory_mb_min: minimum memory, in megabytes
    :param storage_class: class of the storage volume
    :param storage_mb_max: maximum storage, in megabytes
    """

    def __init__(
        self,
        config: Mapping[str, Any] | None = None,
        cpu_cores_max: int | None = None,
        cpu_cores_min: int | None = None,
        memory_mb_max: int | None = None,
        memory_mb_min: int | None = None,
        storage_class: str | None = None,
        storage_mb_max: int | None = None,
    ) -> None:
        known = dict(config or {})
        self.cpu_cores_max: int | None = _choose(cpu_cores_max, known.pop("cpu_cores_max", None))
        self.cpu_cores_min: int | None = _choose(cpu_cores_min, known.pop("cpu_cores_min", None))
        self.memory_mb_max: int | None = _choose(memory_mb_max, known.pop("memory_mb_max", None))
        self.memory_mb_min: int | None = _choose(memory_mb_min, known.pop("memory_mb_min", None))
        self.storage_class: str | None = _choose(storage_class, known.pop("storage_class", None))
        self.storage_mb_max: int | None = _choose(storage_mb_max, known.pop("storage_mb_max", None))
        self._others = known

    def to_dict(self) -> dict[str, Any]:
        """Return the wire form, without values that are None."""
        return _set_values(self)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Resources) and self.to_dict() == other.to_dict()

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Resources({_format_arguments(self.to_dict())})"


class Storage:
    """The settings for a pipeline's state.

    :param config: the values by wire name, such as ``{"backend": {"name": "file", "config": {"sync": {...}}}}``
    :param min_storage_bytes: the size from which a batch of rows is written to storage rather than kept in memory, in bytes
    """

    def __init__(self, config: Mapping[str, Any] | None = None, min_storage_bytes: int | None = None) -> None:
        known = dict(config or {})
        self.min_storage_bytes: int | None = _choose(min_storage_bytes, known.pop("min_storage_bytes", None))
        self.config: dict[str, Any] = known

    def to_dict(self) -> dict[str, Any]:
        """Return the wire form, without values that are None."""
        wire = {name: value for name, value in self.config.items() if value is not None}
        if self.min_storage_bytes is not None:
            wire["min_storage_bytes"] = self.min_storage_bytes
        return wire

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Storage) and self.to_dict() == other.to_dict()

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        # A backend's configuration may hold the keys of an object store.
        return f"Storage(min_storage_bytes={self.min_storage_bytes!r}, config=<{', '.join(self.config) or 'empty'}>)"


@dataclass
class RuntimeConfig:
    """The runtime configuration of a pipeline. None, and an empty tracing endpoint, leave a value to the service's defaults.

    The effect of each field, and the reason why some have none, is in docs/runtime-config.md; the pipeline's log names those that
    are set in vain.

    :param workers: number of shuffle partitions on a dedicated host
    :param hosts: number of hosts; only 1 in this release
    :param storage: storage settings, or True or False to switch storage on or off
    :param tracing: True to send traces
    :param tracing_endpoint_jaeger: the destination of traces, as ``address:port``
    :param cpu_profiler: True to record the time that each operator takes
    :param max_buffering_delay_usecs: the number of microseconds that a step may wait for more input
    :param min_batch_size_records: the number of input records for which a step waits, at most for ``max_buffering_delay_usecs``
    :param clock_resolution_usecs: the interval at which NOW() moves, in microseconds
    :param provisioning_timeout_secs: the number of seconds that a host may take to come up
    :param resources: limits of the pipeline's host
    :param fault_tolerance_model: the guarantee for outputs after a crash; None for explicit checkpoints only
    :param checkpoint_interval_secs: seconds between periodic checkpoints (with a fault tolerance model)
    :param dev_tweaks: experimental settings: ``now_http_driven`` and ``now_offset`` (the clock), ``prepared_queries`` (False plans
        every query anew), ``verify_batches`` (the times at which the files of the state are compared with their hashes: ``once``
        per run, ``always`` or ``never``)
    :param env: the values of ``${env:NAME}`` in the connectors of the pipeline's tables
    :param logging: log filter
    :param clock_timezone_offset: offset of NOW() from UTC
    :param datafusion_memory_mb: memory for ad-hoc queries, in megabytes
    :param max_rss_mb: limit of the host's resident memory, in megabytes
    """

    workers: int | None = None
    hosts: int | None = None
    storage: Storage | bool | None = None
    tracing: bool | None = False
    tracing_endpoint_jaeger: str | None = ""
    cpu_profiler: bool = True
    max_buffering_delay_usecs: int = 0
    min_batch_size_records: int = 0
    clock_resolution_usecs: int | None = None
    provisioning_timeout_secs: int | None = None
    resources: Resources | None = None
    fault_tolerance_model: FaultToleranceModel | None = None
    checkpoint_interval_secs: int | None = None
    dev_tweaks: dict[str, Any] | None = None
    env: dict[str, str] | None = field(default=None, repr=False)
    logging: str | None = None
    clock_timezone_offset: str | None = None
    datafusion_memory_mb: int | None = None
    max_rss_mb: int | None = None
    _others: dict[str, Any] = field(default_factory=dict, repr=False, init=False)
    """The values from the service that have no attribute here: kept, so that reading and writing back changes nothing."""

    @staticmethod
    def default() -> RuntimeConfig:
        """Return the default configuration.

        :returns: a configuration with storage on and the service's defaults elsewhere
        """
        return RuntimeConfig(storage=True, resources=Resources())

    @classmethod
    def from_dict(cls, d: Mapping[str, Any]) -> Self:
        """Read a configuration in wire form.

        :param d: the mapping, as :meth:`to_dict` returns it or the service answers it
        :returns: the configuration. Values without an attribute here are kept for :meth:`to_dict`
        :raises ValueError: when the fault tolerance model is unknown
        """
        known = dict(d)
        config = cls()
        tolerance = known.pop("fault_tolerance", None)
        if isinstance(tolerance, Mapping):
            model = tolerance.get("model")
            config.fault_tolerance_model = None if model in (None, "none") else FaultToleranceModel.from_str(str(model))
            config.checkpoint_interval_secs = tolerance.get("checkpoint_interval_secs")
        elif tolerance is not None:
            # The older form: one word.
            known["fault_tolerance"] = tolerance
        storage = known.pop("storage", None)
        config.storage = Storage(storage) if isinstance(storage, Mapping) else storage
        resources = known.pop("resources", None)
        config.resources = Resources(resources) if isinstance(resources, Mapping) else None
        for name in _PLAIN:
            if name in known:
                setattr(config, name, known.pop(name))
        config._others = known
        return config

    def to_dict(self) -> dict[str, Any]:
        """Return the configuration in wire form, without values that are left to the service's defaults.

        :returns: a JSON-like mapping
        """
        wire: dict[str, Any] = {name: value for name, value in self._others.items() if value is not None}
        for name in _PLAIN:
            value = getattr(self, name)
            if value is not None:
                wire[name] = value
        if not self.tracing_endpoint_jaeger:
            wire.pop("tracing_endpoint_jaeger", None)
        if self.storage is not None:
            wire["storage"] = _to_wire(self.storage)
        if self.resources is not None:
            wire["resources"] = _to_wire(self.resources)
        if self.fault_tolerance_model is not None or self.checkpoint_interval_secs is not None:
            model = self.fault_tolerance_model
            wire["fault_tolerance"] = {
                "model": "none" if model is None else model.value,
                "checkpoint_interval_secs": self.checkpoint_interval_secs,
            }
            if self.checkpoint_interval_secs is None:
                # A null would switch periodic checkpoints off; leaving it out takes the default interval.
                del wire["fault_tolerance"]["checkpoint_interval_secs"]
        return wire


_IN_SECTIONS = ("storage", "resources", "fault_tolerance_model", "checkpoint_interval_secs", "_others")
_PLAIN = tuple(each.name for each in fields(RuntimeConfig) if each.name not in _IN_SECTIONS)
"""The attributes whose wire form is their value."""


def _to_wire(value: Storage | Resources | Mapping[str, Any] | bool) -> Any:
    """Return storage or resources in wire form, also if they were given as a plain mapping."""
    return value.to_dict() if isinstance(value, Storage | Resources) else value


def _choose(first: Any, second: Any) -> Any:
    return second if first is None else first


def _set_values(holder: Resources) -> dict[str, Any]:
    values = {name: value for name, value in vars(holder).items() if not name.startswith("_")}
    return {name: value for name, value in (values | holder._others).items() if value is not None}


def _format_arguments(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in values.items())
