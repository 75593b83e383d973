"""The report of *Test connection* in Airflow."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from sqlalchemy.exc import SQLAlchemyError

from airflow_pipelines.common.database import DatabaseError, open_database
from airflow_pipelines.common.pins import check_spark_packages
from airflow_pipelines.common.settings import Settings
from airflow_pipelines.hooks.connection import ServiceAddress
from airflow_pipelines.sdk.client import PipelineClient
from airflow_pipelines.sdk.wire import path_of

_TEST_TIMEOUT_S: Final = 5.0


def connection_report(address: ServiceAddress, get_connection: Callable[[str], Any]) -> str:
    """Check within seconds that a connection can be used, without creating or starting anything.

    :param address: the address of the connection
    :param get_connection: a function that returns the Spark connection, if one is named
    :returns: the report
    :raises Exception: if it cannot be used; the message says why
    """
    arguments = address.client_arguments() | {"timeout_s": _TEST_TIMEOUT_S, "connect_timeout_s": _TEST_TIMEOUT_S}
    with PipelineClient(**arguments) as client:
        if not client.is_embedded:
            return _service_report(client)
    check_spark_packages()
    if address.spark_conn_id:
        get_connection(address.spark_conn_id)
    return _embedded_report(Settings.load(address.home))


def _service_report(client: PipelineClient) -> str:
    config = client.request("GET", path_of("config"), idempotent=False)
    pipelines = client.request("GET", path_of("pipelines"), params={"selector": "status"}, idempotent=False)
    return f"{client!r} answers: version {config['version']}, {len(pipelines)} pipeline(s)"


def _embedded_report(settings: Settings) -> str:
    """Check the folder only: opening a store would create it, or migrate it to this version."""
    home = settings.home
    nearest = next(path for path in (home, *home.parents) if path.exists())
    if not nearest.is_dir():
        raise NotADirectoryError(f"the home {home} cannot be used: {nearest} is no folder")
    if not os.access(nearest, os.W_OK | os.X_OK):
        raise PermissionError(f"the home {home} cannot be used: this user may not write to {nearest}")
    return f"the embedded service can be used, over {home}: {_store_text(settings)}"


def _store_text(settings: Settings) -> str:
    kind, _, file = settings.database_url.partition(":///")
    if kind != "sqlite":
        try:
            with open_database(settings.database_url).connect():
                return "the database of its store answers"
        except (DatabaseError, SQLAlchemyError) as error:
            raise RuntimeError(f"the database of the store cannot be used: {error}") from error
    return "its store is there" if Path(file).is_file() else "there is no store yet, the first task makes it"
