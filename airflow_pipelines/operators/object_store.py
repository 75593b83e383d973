"""The configuration of an object store for the copies of a pipeline's checkpoints, from an Airflow connection."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from airflow.sdk import Connection

_TYPES: Final = ("aws", "s3", "generic")
_IN_CLEAR: Final = {"endpoint": "endpoint_url", "region": "region_name", "bucket": "bucket"}
"""The values that are no secrets: keys of ``sync`` with the names of the connection's extras."""
_TEMPORARY: Final = ("aws_session_token", "role_arn")


def with_object_store(runtime_config: Mapping[str, Any] | None, connection: Connection) -> dict[str, Any]:
    """Return a runtime configuration whose checkpoints are copied with a connection's login and password.

    The keys themselves are not in it. It has ``${conn:CONN_ID.login}`` and ``${conn:CONN_ID.password}`` in their places, and the
    host replaces them when the pipeline starts.

    :param runtime_config: the configuration in wire form, with other values to set
    :param connection: the connection of the object store
    :returns: a new configuration
    :raises ValueError: if the connection is not one of an object store, if the configuration sets the same values, or if no bucket
        is set
    """
    where = f"object_store_conn_id {connection.conn_id!r}"
    if connection.conn_type not in _TYPES:
        raise ValueError(f"{where} is a connection of type {connection.conn_type!r}; known: {', '.join(_TYPES)}")
    extra = connection.extra_dejson
    temporary = [name for name in _TEMPORARY if extra.get(name)]
    if temporary:
        raise ValueError(f"{where} has {', '.join(temporary)}; checkpoints are copied with a key and its secret, or with none")
    config = dict(runtime_config or {})
    storage = dict(config.get("storage") or {}) if isinstance(config.get("storage"), Mapping) else {}
    backend = dict(storage.get("backend") or {"name": "file"})
    options = dict(backend.get("config") or {})
    sync = dict(options.get("sync") or {})
    keys = [name for name in ("access_key", "secret_key") if sync.get(name)]
    if keys:
        raise ValueError(f"{where} is given, and runtime_config has {', '.join(keys)} as well: remove the one or the other")
    sync |= {name: extra[theirs] for name, theirs in _IN_CLEAR.items() if extra.get(theirs) and not sync.get(name)}
    if not sync.get("bucket"):
        raise ValueError(
            f"{where} is given, and nothing says which bucket: give runtime_config "
            "{'storage': {'backend': {'name': 'file', 'config': {'sync': {'bucket': ...}}}}}"
        )
    if connection.login and connection.password:
        sync["access_key"] = f"${{conn:{connection.conn_id}.login}}"
        sync["secret_key"] = f"${{conn:{connection.conn_id}.password}}"
    return {**config, "storage": {**storage, "backend": {**backend, "config": {**options, "sync": sync}}}}
