"""The connectors for Delta tables."""

from __future__ import annotations

from typing import Final

from airflow_pipelines.connectors.base import InputTransport, OutputTransport
from airflow_pipelines.connectors.definition import (
    Declared,
    Guarantee,
    InputContext,
    InputDefinition,
    OutputContext,
    OutputDefinition,
)
from airflow_pipelines.connectors.transports.delta_table.input_options import DeltaInputOptions, check_input
from airflow_pipelines.connectors.transports.delta_table.output_options import DeltaOutputOptions, check_output
from airflow_pipelines.connectors.transports.lake.output_options import mirrors


def _check_input(options: DeltaInputOptions, declared: Declared) -> None:
    check_input(options, declared.schema)


def _open_input(options: DeltaInputOptions, context: InputContext) -> InputTransport:
    from airflow_pipelines.connectors.transports.delta_table.input import DeltaTableInput

    return DeltaTableInput(options, context)


DELTA_TABLE_INPUT: Final = InputDefinition(
    name="delta_table_input",
    options=DeltaInputOptions,
    open=_open_input,
    check=_check_input,
    packages=("deltalake",),
    extra="delta",
)


def _check_output(options: DeltaOutputOptions, declared: Declared) -> None:
    check_output(options, declared.schema, has_index=declared.common.index is not None)


def _open_output(options: DeltaOutputOptions, context: OutputContext) -> OutputTransport:
    from airflow_pipelines.connectors.transports.delta_table.output import DeltaTableOutput

    return DeltaTableOutput(options, context.schema, context.key, context.writer, context.fence, context.left_out)


DELTA_TABLE_OUTPUT: Final = OutputDefinition(
    name="delta_table_output",
    options=DeltaOutputOptions,
    open=_open_output,
    guarantee=Guarantee.EXACTLY_ONCE,
    mirrors=mirrors,
    check=_check_output,
    packages=("deltalake",),
    extra="delta",
)
