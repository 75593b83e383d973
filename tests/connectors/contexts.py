"""What connectors are opened with, for tests that make one without a declaration."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from airflow_pipelines.connectors.common_options import ConnectorOptions
from airflow_pipelines.connectors.definition import InputContext, OutputContext, PipelineReference
from airflow_pipelines.rows.formats.defaults import wall_clock
from airflow_pipelines.rows.formats.definition import ChangeEncoder
from airflow_pipelines.rows.formats.parsed import Parser
from airflow_pipelines.rows.schema import RelationSchema

PIPELINE = PipelineReference("0194f2a0-0000-7000-8000-000000000000", "test")


def input_context(schema: RelationSchema, format_name: str | None, new_parser: Callable[[], Parser]) -> InputContext:
    """The context of an input.

    :param schema: of its table
    :param format_name: its format
    :param new_parser: makes what reads that
    """
    return InputContext(f"{schema.name}.c", schema, format_name, new_parser, wall_clock, PIPELINE, ConnectorOptions())


def output_context(schema: RelationSchema, key: tuple[str, ...] = (), **parts: Any) -> OutputContext:
    """The context of an output.

    :param schema: of its view
    :param key: the columns of its index
    :param parts: what is not as usual
    """

    def no_encoder() -> ChangeEncoder:
        raise AssertionError("this output has no format")

    usual = OutputContext(
        endpoint=f"{schema.name}.c",
        schema=schema,
        key=key,
        format=None,
        format_options=None,
        new_encoder=no_encoder,
        positions=None,
        fence=None,
        pipeline=PIPELINE,
        common=ConnectorOptions(),
    )
    return replace(usual, **parts)
