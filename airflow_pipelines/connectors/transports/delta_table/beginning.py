"""The preparation of a table by an output: it makes or empties the table, or checks that it can go on with it."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from typing import Any, Final

import pyarrow as pa
from deltalake import DeltaTable, Schema, write_deltalake
from deltalake.exceptions import TableNotFoundError

from airflow_pipelines.connectors.base import ConnectorFailure
from airflow_pipelines.connectors.transports.delta_table.appending import append
from airflow_pipelines.connectors.transports.delta_table.columns import differences
from airflow_pipelines.connectors.transports.delta_table.ledger import DeltaLedger
from airflow_pipelines.connectors.transports.delta_table.output_options import DeltaOutputOptions
from airflow_pipelines.connectors.transports.lake.output_options import Beginning

logger = logging.getLogger(__name__)

_NEW: Final = "Give the connector another name or 'uri' to start a new table"


def existing(uri: str, storage: Mapping[str, str]) -> DeltaTable | None:
    """Return the newest version of a table, or None if there is none."""
    try:
        return DeltaTable(uri, storage_options=dict(storage))
    except TableNotFoundError:
        return None


def first_version(options: DeltaOutputOptions, schema: pa.Schema, ledger: DeltaLedger) -> DeltaTable:
    """Prepare the table at the first start of an output, and return it.

    :param options: the options of the connector
    :param schema: the schema of the rows
    :param ledger: the ledger of the output
    :raises ConnectorFailure: when a table is there that it cannot or may not write
    """
    table = existing(options.uri, options.storage_options)
    partitions = list(options.partition_by)
    if table is None:
        return DeltaTable.create(
            options.uri,
            schema,
            partition_by=partitions or None,
            configuration=options.properties() or None,
            storage_options=dict(options.storage_options),
            commit_properties=ledger.beginning(began_empty=True),
        )
    if options.mode is Beginning.ERROR_IF_EXISTS:
        # Do not refuse a table that an interrupted start has made.
        if ledger.step(table) == -1 and _is_empty(table):
            check_columns(table, options, schema)
            return table
        raise ConnectorFailure(
            f"delta_table_output: there is a table at {options.uri} already, version {table.version()}. Give another 'uri', delete "
            "the table, or use 'mode': 'append' or 'truncate'."
        )
    if options.mode is Beginning.TRUNCATE:
        if properties := options.properties():
            table.alter.set_table_properties(properties, raise_if_not_exists=False)
        write_deltalake(
            table,
            schema.empty_table(),
            mode="overwrite",
            schema_mode="overwrite",
            partition_by=partitions or None,
            commit_properties=ledger.beginning(began_empty=True),
        )
    else:
        check_columns(table, options, schema)
        _name_other_properties(table, options)
        append(table, schema.empty_table(), ledger.beginning(began_empty=_is_empty(table)))
    return DeltaTable(options.uri, storage_options=dict(options.storage_options))


def next_version(options: DeltaOutputOptions, schema: pa.Schema, ledger: DeltaLedger) -> DeltaTable:
    """Prepare the table at a later start of an output, and return it.

    :param options: the options of the connector
    :param schema: the schema of the rows
    :param ledger: the ledger of the output
    :raises ConnectorFailure: when it is not the one that the output wrote
    """
    table = existing(options.uri, options.storage_options)
    if table is None:
        raise ConnectorFailure(f"delta_table_output: the table at {options.uri}, which this pipeline wrote, is gone. {_NEW}.")
    step = ledger.step(table)
    if step is None:
        raise ConnectorFailure(
            f"delta_table_output: the table at {options.uri} is not the one that this pipeline wrote: its log does not name it. "
            f"{_NEW}, or put the table back."
        )
    check_columns(table, options, schema)
    append(table, schema.empty_table(), ledger.opening(step, ledger.last_ts(table)))
    return DeltaTable(options.uri, storage_options=dict(options.storage_options))


def _name_other_properties(table: DeltaTable, options: DeltaOutputOptions) -> None:
    """Log which options an existing table does not follow, since they are for new tables only."""
    has = table.metadata().configuration
    other = [name for name, value in options.properties().items() if has.get(name) != value]
    if other:
        logger.warning(
            "delta_table_output: the table at %s keeps its own %s: checkpoint_interval, log_retention_duration and "
            "enable_expired_log_cleanup are for new tables, and with 'mode': 'truncate'",
            options.uri,
            ", ".join(other),
        )


def check_columns(table: DeltaTable, options: DeltaOutputOptions, schema: pa.Schema) -> None:
    """Check that rows can go into an existing table.

    :raises ConnectorFailure: naming each column that does not fit
    """
    reasons = differences(_json(Schema.from_arrow(schema)), _json(table.schema()), options.partition_by)
    if reasons:
        raise ConnectorFailure(
            f"delta_table_output: the table at {options.uri} does not have the columns of the rows to write: {'; '.join(reasons)}. "
            "Change the view or the table (ALTER TABLE), or write a new table: another 'uri', or 'mode': 'truncate' in a connector "
            "with another name."
        )


def _is_empty(table: DeltaTable) -> bool:
    return not table.file_uris()


def _json(schema: Schema) -> dict[str, Any]:
    decoded: dict[str, Any] = json.loads(schema.to_json())
    return decoded
