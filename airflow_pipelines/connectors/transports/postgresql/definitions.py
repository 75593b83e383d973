"""The connectors of PostgreSQL."""

from __future__ import annotations

from typing import Final

from airflow_pipelines.connectors.base import InputTransport
from airflow_pipelines.connectors.definition import Guarantee, InputContext, InputDefinition
from airflow_pipelines.connectors.transports.postgresql.options import PostgresInputOptions

_PACKAGES: Final = ("psycopg", "adbc_driver_postgresql")
_EXTRA: Final = "postgres"


def _open_query(options: PostgresInputOptions, context: InputContext) -> InputTransport:
    from airflow_pipelines.connectors.transports.postgresql.query_input import QueryInput

    return QueryInput(options, context)


POSTGRES_INPUT: Final = InputDefinition(
    name="postgres_input",
    options=PostgresInputOptions,
    open=_open_query,
    guarantee=Guarantee.AT_LEAST_ONCE,
    seekable=False,
    packages=_PACKAGES,
    extra=_EXTRA,
)
