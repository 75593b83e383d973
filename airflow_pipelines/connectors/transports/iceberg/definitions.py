"""The connectors for Iceberg tables."""

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
from airflow_pipelines.connectors.transports.iceberg.input_options import IcebergInputOptions
from airflow_pipelines.connectors.transports.iceberg.output_options import IcebergOutputOptions, check_output
from airflow_pipelines.connectors.transports.lake.output_options import mirrors


def _open_input(options: IcebergInputOptions, context: InputContext) -> InputTransport:
    from airflow_pipelines.connectors.transports.iceberg.input import IcebergInput

    return IcebergInput(options, context)


def _check_output(options: IcebergOutputOptions, declared: Declared) -> None:
    check_output(options, declared.schema, declared.common.index)


def _open_output(options: IcebergOutputOptions, context: OutputContext) -> OutputTransport:
    from airflow_pipelines.connectors.transports.iceberg.output import IcebergOutput

    return IcebergOutput(options, context)


ICEBERG_INPUT: Final = InputDefinition(
    name="iceberg_input",
    options=IcebergInputOptions,
    open=_open_input,
    packages=("pyiceberg",),
    extra="iceberg",
)
ICEBERG_OUTPUT: Final = OutputDefinition(
    name="iceberg_output",
    options=IcebergOutputOptions,
    open=_open_output,
    guarantee=Guarantee.EXACTLY_ONCE,
    mirrors=mirrors,
    check=_check_output,
    packages=("pyiceberg",),
    extra="iceberg",
)
