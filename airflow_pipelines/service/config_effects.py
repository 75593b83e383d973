"""What each field of a runtime configuration does here, or why it does nothing: one table for the log and the documentation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from airflow_pipelines.service.configs import DevTweaks, at, runtime_config


@dataclass(frozen=True, slots=True)
class Effect:
    """What a field does; with ``has_effect`` False the reason why it does nothing."""

    text: str
    has_effect: bool = True


def _none(reason: str) -> Effect:
    return Effect(reason, has_effect=False)


_SYNC: Final = "storage.backend.config.sync."
_TRANSFER: Final = _none("copies are made by fsspec, which chooses how it transfers files")
_CLUSTER: Final = _none("no host runs in a cluster that knows this; use a Spark connection")
_SPARK_THREADS: Final = _none("Spark chooses its own threads; 'resources.cpu_cores_max' limits them on a dedicated host")
_STORED: Final = _none("the engine chooses by the number of rows what it keeps in memory and what in files")
_LEAST: Final = _none("nothing is reserved: a host takes what it needs up to its limit")

EFFECTS: Final[dict[str, Effect]] = {
    "workers": Effect("number of Spark's shuffle partitions on a dedicated host; no effect on the shared one"),
    "hosts": _none("a pipeline runs in one Spark application, whose executors are Spark's affair"),
    "storage": Effect("false or null keeps nothing: no checkpoint, no graceful stop"),
    "storage.backend.name": Effect("`default` and `file` both keep the state in files of the pipeline's storage folder"),
    "storage.backend.config.async_threads": _none("the engine reads and writes in threads of its own"),
    "storage.backend.config.ioop_delay": _none("a means of testing other implementations"),
    f"{_SYNC}bucket": Effect("where checkpoints are copied to: `name/prefix` in S3, a URL of fsspec, or a folder"),
    f"{_SYNC}provider": _none("fsspec speaks S3 to all of them"),
    f"{_SYNC}endpoint": Effect("address of an S3 service other than Amazon's"),
    f"{_SYNC}region": Effect("region of the bucket; default us-east-1"),
    f"{_SYNC}access_key": Effect("key to the bucket; better as `${secret:NAME}`"),
    f"{_SYNC}secret_key": Effect("its secret; better as `${secret:NAME}`"),
    f"{_SYNC}read_bucket": Effect("a second place to look for the checkpoint to start from"),
    f"{_SYNC}start_from_checkpoint": Effect("`latest` or a checkpoint's id: what to start from"),
    f"{_SYNC}fail_if_no_checkpoint": Effect("the start fails when there is no such checkpoint, instead of starting empty"),
    f"{_SYNC}standby": _none("there is no standby in this release"),
    f"{_SYNC}pull_interval": _none("there is no standby in this release"),
    f"{_SYNC}push_interval": Effect("seconds after which a new checkpoint is copied by itself; null copies when asked only"),
    f"{_SYNC}transfers": _TRANSFER,
    f"{_SYNC}checkers": _TRANSFER,
    f"{_SYNC}ignore_checksum": Effect("true: copies that are there are compared by size only, not by their hash"),
    f"{_SYNC}multi_thread_streams": _TRANSFER,
    f"{_SYNC}multi_thread_cutoff": _TRANSFER,
    f"{_SYNC}upload_concurrency": _TRANSFER,
    f"{_SYNC}flags": _TRANSFER,
    f"{_SYNC}retention_min_count": _none("copies are never deleted"),
    f"{_SYNC}retention_min_age": _none("copies are never deleted"),
    "storage.min_storage_bytes": _STORED,
    "storage.min_step_storage_bytes": _STORED,
    "storage.compression": _none("files are always compressed with LZ4: most are read once or twice before they are merged"),
    "storage.cache_mib": _none("files are read through the operating system's cache"),
    "fault_tolerance.model": Effect("`none`, `at_least_once`, `exactly_once`: see the Python SDK's page, Waiting"),
    "fault_tolerance.checkpoint_interval_secs": Effect("seconds between checkpoints, with a model other than `none`; null: none"),
    "cpu_profiler": _none("figures of each operator are always kept (`steps`), and cost nothing to speak of"),
    "tracing": _none("no traces are sent; Spark's own interface shows a host's jobs"),
    "tracing_endpoint_jaeger": _none("no traces are sent; Spark's own interface shows a host's jobs"),
    "min_batch_size_records": _none("a step takes what has come in when the step before is done, and never waits for more"),
    "max_buffering_delay_usecs": _none("a step takes what has come in when the step before is done, and never waits for more"),
    "resources.cpu_cores_min": _LEAST,
    "resources.cpu_cores_max": Effect("cores of a dedicated host; no effect on the shared host, which all pipelines use"),
    "resources.memory_mb_min": _LEAST,
    "resources.memory_mb_max": Effect("memory of a dedicated host's driver; no effect on the shared host, which all pipelines use"),
    "resources.storage_mb_max": _none("storage is not limited; the file system's own quota can do that"),
    "resources.storage_class": _CLUSTER,
    "resources.service_account_name": _CLUSTER,
    "resources.namespace": _CLUSTER,
    "clock_resolution_usecs": Effect("how often NOW() moves, in microseconds"),
    "clock_timezone_offset": Effect("what is added to the time in UTC for NOW(), such as `+02:00`"),
    "pin_cpus": _none("Spark's tasks are placed by the operating system"),
    "provisioning_timeout_secs": Effect("seconds after which a start fails whose host has not come up; default 600"),
    "max_parallel_connector_init": _none("connectors open in threads of their own while the pipeline runs"),
    "init_containers": _CLUSTER,
    "checkpoint_during_suspend": Effect("false: a graceful stop takes no checkpoint and loses what came after the last"),
    "http_workers": _SPARK_THREADS,
    "io_workers": _SPARK_THREADS,
    "dev_tweaks.now_http_driven": Effect("true: the clock stands still but for requests that move it"),
    "dev_tweaks.now_offset": Effect("milliseconds that are added to the clock"),
    "dev_tweaks.prepared_queries": Effect("false: every small query of a step is planned anew"),
    "dev_tweaks.verify_batches": Effect("`once`, `always`, `never`: how often files of the state are compared with their hashes"),
    "env": Effect(
        "what `${env:NAME}` in connectors stands for, before what `connector_env` lets through; each value is kept as a secret"
    ),
    "logging": _none("a pipeline's log has one level"),
    "pipeline_template_configmap": _CLUSTER,
    "datafusion_memory_mb": _none("ad-hoc queries run on Spark, in the memory of the host"),
    "max_rss_mb": _none("a host's memory is limited by Spark's settings; see 'resources.memory_mb_max'"),
}  # fmt: skip


def without_effect(config: dict[str, Any]) -> list[str]:
    """What a runtime configuration sets that does nothing here, in words for whoever wrote it.

    :param config: as :func:`~airflow_pipelines.service.configs.runtime_config` gives it
    :returns: one line per field that is set to something else than its default, and per tweak that nobody knows
    """
    defaults = runtime_config(None)
    lines = [
        f"runtime_config.{path} has no effect: {effect.text}"
        for path, effect in EFFECTS.items()
        if not effect.has_effect and at(config, path) not in (None, at(defaults, path))
    ]
    known = ", ".join(DevTweaks.model_fields)
    unknown = [name for name in config["dev_tweaks"] if name not in DevTweaks.model_fields]
    return lines + [f"runtime_config.dev_tweaks.{name} has no effect: it is not known here (known: {known})" for name in unknown]
