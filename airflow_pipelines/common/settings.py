"""The settings of the store and the service, read once from arguments and the environment."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

from airflow_pipelines.common.pins import SetupError

PREFIX = "AIRFLOW_PIPELINES_"
MAX_BODY_BYTES = 16 * 2**20
MAX_INGRESS_BYTES = 256 * 2**20
"""The largest body of a request with rows; a host holds the rows of one request in memory."""
SHORTEST_S = 0.1
MOST_DIGITS = 18


class SettingsError(SetupError):
    """The error of an environment variable with an invalid value.

    :param name: the variable, without :data:`PREFIX`
    :param value: its value
    :param expected: a description of valid values
    """

    def __init__(self, name: str, value: str, expected: str) -> None:
        super().__init__(
            f"The environment variable {PREFIX}{name} is {value[:80]!r}, and should be {expected}. "
            "Correct it, or unset it for the default"
        )


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of one store and of the service over it.

    :param home: folder of the embedded store, pipeline storage and logs
    :param database_url: SQLAlchemy URL; default is SQLite in ``home``
    :param secrets_folder: folder of the values of ``${secret:NAME}``; default is in ``home``
    :param storage: folder under which each pipeline keeps its storage
    :param deployer: ``shared`` or ``dedicated``
    :param master: Spark master for hosts started with spark-submit
    :param driver_memory: memory of a host's driver, in Spark's notation
    :param host_address: the address that hosts listen on
    :param api_keys: accepted bearer keys; empty accepts everybody (loopback use)
    :param tls_certificate: PEM file with the certificate of the service, for HTTPS
    :param tls_key: PEM file with its key
    :param max_body_bytes: the maximum size of a request's body
    :param max_ingress_bytes: the maximum size of a request's body with rows
    :param allowed_hosts: names, beside those of loopback, under which the service may be addressed, without a port
    :param heartbeat_timeout_s: seconds without a heartbeat after which a host on another machine is asked whether it is alive
    :param query_timeout_s: seconds that an ad-hoc request may take from its arrival to the start of its result, and from one part
        of the result to the next
    :param query_result_bytes: maximum number of bytes that an ad-hoc request may collect: rows to insert or delete
    :param query_concurrency: maximum number of concurrent ad-hoc requests of one pipeline
    :param connector_env: names of environment variables that connectors may name as ``${env:NAME}``; ``*`` stands for any
        characters
    :param connector_connections: ids of Airflow connections that connectors may name as ``${conn:CONN_ID.FIELD}``; ``*`` stands for
        any characters
    :param unstable_features: names of enabled features that are not meant for production: ``testing``
    :param spark_ui_port: the port of Spark's web page on a host, or the next free one; 0 for no such page
    :param host_idle_s: seconds after which a shared host ends if nothing runs on it and nobody compiles; 0 keeps it
    """

    home: Path
    database_url: str = field(repr=False, default="")
    storage: Path = Path()
    secrets_folder: Path | None = None
    deployer: str = "shared"
    master: str = "local[*]"
    driver_memory: str = "4g"
    host_address: str = "127.0.0.1"
    api_keys: tuple[str, ...] = field(repr=False, default=())
    heartbeat_timeout_s: float = 15.0
    allowed_hosts: tuple[str, ...] = ()
    max_body_bytes: int = MAX_BODY_BYTES
    max_ingress_bytes: int = MAX_INGRESS_BYTES
    tls_certificate: Path | None = None
    tls_key: Path | None = None
    host_idle_s: float = 1800.0
    query_timeout_s: float = 300.0
    query_result_bytes: int = 512 << 20
    query_concurrency: int = 4
    spark_ui_port: int = 0
    connector_env: tuple[str, ...] = ()
    connector_connections: tuple[str, ...] = ("*",)
    unstable_features: tuple[str, ...] = ()

    @property
    def secrets(self) -> Path:
        """The folder of the secrets."""
        return self.secrets_folder or self.home / "secrets"

    @property
    def logs(self) -> Path:
        """The folder of the pipelines' and hosts' logs."""
        return self.home / "logs"

    @classmethod
    def load(cls, home: str | os.PathLike[str] | None = None, **overrides: Any) -> Self:
        """Read the settings from arguments, else ``AIRFLOW_PIPELINES_*`` variables, else defaults.

        :param home: the folder of the service's files; default ``AIRFLOW_PIPELINES_HOME``, else ``~/.airflow_pipelines``
        :param overrides: other settings by their names; they take precedence over the variables
        :raises SettingsError: when a variable is not the number that it should be
        """
        env = os.environ
        base = Path(home or env.get(f"{PREFIX}HOME") or Path.home() / ".airflow_pipelines").expanduser().absolute()
        settings = cls(
            home=base,
            database_url=env.get(f"{PREFIX}DATABASE_URL", f"sqlite:///{base / 'store.sqlite'}"),
            storage=Path(env.get(f"{PREFIX}STORAGE", base / "storage")),
            secrets_folder=_path(env.get(f"{PREFIX}SECRETS")),
            deployer=env.get(f"{PREFIX}DEPLOYER", "shared"),
            master=env.get(f"{PREFIX}MASTER", "local[*]"),
            driver_memory=env.get(f"{PREFIX}DRIVER_MEMORY", "4g"),
            host_address=env.get(f"{PREFIX}HOST_ADDRESS", "127.0.0.1"),
            api_keys=_split_list(env.get(f"{PREFIX}API_KEYS", "")),
            tls_certificate=_path(env.get(f"{PREFIX}TLS_CERTIFICATE")),
            tls_key=_path(env.get(f"{PREFIX}TLS_KEY")),
            max_body_bytes=_whole("MAX_BODY_BYTES", MAX_BODY_BYTES),
            max_ingress_bytes=_whole("MAX_INGRESS_BYTES", MAX_INGRESS_BYTES),
            allowed_hosts=_split_list(env.get(f"{PREFIX}ALLOWED_HOSTS", "")),
            heartbeat_timeout_s=_seconds("HEARTBEAT_TIMEOUT_S", 15),
            host_idle_s=_seconds("HOST_IDLE_S", 1800, least=0),
            query_timeout_s=_seconds("QUERY_TIMEOUT_S", 300),
            query_result_bytes=_whole("QUERY_RESULT_BYTES", 512 << 20),
            query_concurrency=_whole("QUERY_CONCURRENCY", 4),
            spark_ui_port=_whole("SPARK_UI_PORT", 0, least=0),
            connector_env=_split_list(env.get(f"{PREFIX}CONNECTOR_ENV", "")),
            connector_connections=_split_list(env.get(f"{PREFIX}CONNECTOR_CONNECTIONS", "*")),
            unstable_features=_split_list(env.get(f"{PREFIX}UNSTABLE_FEATURES", "")),
        )
        return replace(settings, **overrides)


def _path(text: str | None) -> Path | None:
    return Path(text) if text else None


def _whole(name: str, default: int, *, least: int = 1) -> int:
    """Return the value of a variable as a whole number; an empty variable counts as not set."""
    text = os.environ.get(f"{PREFIX}{name}", "").strip()
    if not text:
        return default
    if not text.isdecimal() or len(text) > MOST_DIGITS or int(text) < least:
        raise SettingsError(name, text, f"a whole number of at least {least}")
    return int(text)


def _seconds(name: str, default: float, *, least: float = SHORTEST_S) -> float:
    """Return the value of a variable in seconds; an empty variable counts as not set."""
    text = os.environ.get(f"{PREFIX}{name}", "").strip()
    if not text:
        return default
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not (math.isfinite(seconds) and seconds >= least):
        raise SettingsError(name, text, f"a number of seconds, at least {least:g}")
    return seconds


def _split_list(text: str) -> tuple[str, ...]:
    """Split a text at its commas."""
    return tuple(part.strip() for part in text.split(",") if part.strip())
