"""The datasets that connectors read and write, by their OpenLineage names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, Final
from urllib.parse import SplitResult, urlsplit


@dataclass(frozen=True, order=True)
class DatasetName:
    """The name of a dataset: its namespace, and its name within that."""

    namespace: str
    name: str


def datasets_of(transport: str, config: Mapping[str, Any]) -> tuple[DatasetName, ...]:
    """Return the datasets that a connector reads or writes.

    :param transport: its transport
    :param config: the transport's configuration. Parts of it that are references to secrets or connections are not known here
    :returns: the datasets; none if the transport has none with a name, or a part of the name is not known. A name has no user and
        no password
    """
    name_of = _TRANSPORTS.get(transport)
    if name_of is None:
        return ()
    try:
        names = name_of(config)
    except (KeyError, TypeError, ValueError):
        # The connector itself rejects such a configuration.
        return ()
    return tuple(sorted({each for each in names if each is not None}))


def _is_known(*parts: Any) -> bool:
    return all(isinstance(part, str) and part != "" and "${" not in part for part in parts)


def _dataset(namespace: str, name: str) -> DatasetName | None:
    return DatasetName(namespace, name) if _is_known(namespace, name) else None


def _kafka(config: Mapping[str, Any]) -> list[DatasetName | None]:
    return [_dataset(f"kafka://{str(config['bootstrap.servers']).split(',')[0].strip()}", config["topic"])]


def _file(config: Mapping[str, Any]) -> list[DatasetName | None]:
    return [_at(str(config["path"]))]


def _at(place: str) -> DatasetName | None:
    """Return the dataset at a place in a file system or object store: a path, or a URL."""
    parts = urlsplit(place)
    if not parts.scheme or parts.scheme == "file":
        return _dataset("file", str(PurePosixPath(parts.path)))
    return _dataset(f"{_SCHEMES.get(parts.scheme, parts.scheme)}://{_host(parts)}", parts.path.strip("/") or "/")


_SCHEMES: Final = {"s3a": "s3", "gcs": "gs"}


def _host(parts: SplitResult) -> str:
    """Return the host and port of a URL, without the user.

    A container of a storage account is kept, although it has the place of a user.
    """
    user, at, host = parts.netloc.rpartition("@")
    return parts.netloc if at and ":" not in user and parts.scheme.startswith("abfs") else host


def _s3(config: Mapping[str, Any]) -> list[DatasetName | None]:
    bucket = f"s3://{config['bucket_name']}"
    if "prefix" in config:
        return [_dataset(bucket, config["prefix"] or "/")]
    return [_dataset(bucket, key) for key in (config["keys"] if "keys" in config else [config["key"]])]


def _postgres(config: Mapping[str, Any]) -> list[DatasetName | None]:
    # postgres_input reads a query, whose tables are not known.
    table = config.get("source_table") or config.get("table")
    uri = str(config["uri"])
    if table is None or not _is_known(uri.rpartition("@")[2]):
        return []
    parts = urlsplit(uri)
    qualified = str(table) if "." in str(table) else f"public.{table}"
    return [_dataset(f"postgres://{parts.hostname}:{parts.port or 5432}", f"{parts.path.strip('/')}.{qualified}")]


def _table(config: Mapping[str, Any]) -> list[DatasetName | None]:
    return [_at(str(config["uri"]))]


def _iceberg(config: Mapping[str, Any]) -> list[DatasetName | None]:
    if config.get("metadata_location"):
        return [_at(str(config["metadata_location"]).partition("/metadata/")[0])]
    catalog = str(config.get("rest.uri") or config.get("sql.uri") or config.get("catalog_type") or "")
    parts = urlsplit(catalog)
    return [_dataset(f"iceberg://{_host(parts) or parts.path}", config["table_name"])]


def _url(config: Mapping[str, Any]) -> list[DatasetName | None]:
    return [_at(str(config["path"]))]


def _redis(config: Mapping[str, Any]) -> list[DatasetName | None]:
    parts = urlsplit(str(config["connection_string"]))
    return [_dataset(f"redis://{_host(parts) or 'unix'}", parts.path.strip("/") or "0")]


def _pipeline(config: Mapping[str, Any]) -> list[DatasetName | None]:
    return [_dataset(f"airflow-pipelines://{_host(urlsplit(str(config['url'])))}", f"{config['pipeline']}.{config['view']}")]


_TRANSPORTS: Final[Mapping[str, Callable[[Mapping[str, Any]], list[DatasetName | None]]]] = {
    "delta_table_input": _table,
    "delta_table_output": _table,
    "file_input": _file,
    "file_output": _file,
    "http_output": _url,
    "iceberg_input": _iceberg,
    "iceberg_output": _iceberg,
    "kafka_input": _kafka,
    "kafka_output": _kafka,
    "pipeline_input": _pipeline,
    "postgres_cdc_input": _postgres,
    "postgres_output": _postgres,
    "redis_output": _redis,
    "s3_input": _s3,
    "url_input": _url,
}
