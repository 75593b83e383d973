"""The connectors of PostgreSQL."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from airflow_pipelines.connectors.base import InputTransport, OutputTransport
from airflow_pipelines.connectors.definition import (
    Declared,
    Guarantee,
    InputContext,
    InputDefinition,
    OutputContext,
    OutputDefinition,
)
from airflow_pipelines.connectors.transports.postgresql.options import (
    OutputMode,
    PostgresCdcInputOptions,
    PostgresInputOptions,
    PostgresOutputOptions,
)
from airflow_pipelines.rows.formats.option_errors import InvalidOptionError

_PACKAGES: Final = ("psycopg", "adbc_driver_postgresql")
_EXTRA: Final = "postgres"


def _open_query(options: PostgresInputOptions, context: InputContext) -> InputTransport:
    from airflow_pipelines.connectors.transports.postgresql.query_input import QueryInput

    return QueryInput(options, context)


def _open_changes(options: PostgresCdcInputOptions, context: InputContext) -> InputTransport:
    from airflow_pipelines.connectors.transports.postgresql.cdc_input import PostgresCdcInput

    return PostgresCdcInput(options, context)


def _open_output(options: PostgresOutputOptions, context: OutputContext) -> OutputTransport:
    from airflow_pipelines.connectors.transports.postgresql.output import PostgresOutput

    return PostgresOutput(options, context)


def _check_output(options: PostgresOutputOptions, declared: Declared) -> None:
    """Refuse a table that is to equal a view if no index says by which columns rows are found.

    :raises InvalidOptionError: when there is no index
    """
    if options.mode is OutputMode.MATERIALIZED and declared.common.index is None:
        raise InvalidOptionError(
            "mode 'materialized' of transport 'postgres_output' needs an index, by which rows are updated and deleted: give "
            f"the option 'index' beside 'transport', and declare it with CREATE INDEX name ON {declared.schema.name}(columns)"
        )


def _mirrors(declared: Mapping[str, Any]) -> bool:
    return declared.get("mode") != OutputMode.CDC.value


POSTGRES_INPUT: Final = InputDefinition(
    name="postgres_input",
    options=PostgresInputOptions,
    open=_open_query,
    guarantee=Guarantee.AT_LEAST_ONCE,
    seekable=False,
    packages=_PACKAGES,
    extra=_EXTRA,
)
POSTGRES_CDC_INPUT: Final = InputDefinition(
    name="postgres_cdc_input",
    options=PostgresCdcInputOptions,
    open=_open_changes,
    packages=_PACKAGES,
    extra=_EXTRA,
)
POSTGRES_OUTPUT: Final = OutputDefinition(
    name="postgres_output",
    options=PostgresOutputOptions,
    open=_open_output,
    guarantee=Guarantee.EXACTLY_ONCE,
    mirrors=_mirrors,
    check=_check_output,
    packages=_PACKAGES,
    extra=_EXTRA,
)
