"""The connectors for Delta tables."""

from __future__ import annotations

from typing import Final

from airflow_pipelines.connectors.base import OutputTransport
from airflow_pipelines.connectors.definition import Declared, Guarantee, OutputContext, OutputDefinition
from airflow_pipelines.connectors.transports.delta_table.output_options import DeltaOutputOptions, check_output


def _check_output(options: DeltaOutputOptions, declared: Declared) -> None:
    check_output(options, declared.schema, has_index=declared.common.index is not None)


def _open_output(options: DeltaOutputOptions, context: OutputContext) -> OutputTransport:
    from airflow_pipelines.connectors.transports.delta_table.output import DeltaTableOutput

    return DeltaTableOutput(options, context.schema, context.key, context.writer, context.fence)


DELTA_TABLE_OUTPUT: Final = OutputDefinition(
    name="delta_table_output",
    options=DeltaOutputOptions,
    open=_open_output,
    guarantee=Guarantee.EXACTLY_ONCE,
    check=_check_output,
    packages=("deltalake",),
    extra="delta",
)
