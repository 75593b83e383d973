"""The locations of the connectors and formats of this package. Their modules are imported when a program names them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_TRANSPORTS: Final = "airflow_pipelines.connectors.transports"
_FORMATS: Final = "airflow_pipelines.rows.formats"

BUILT_IN_INPUTS: Final[Mapping[str, str]] = {
    "datagen": f"{_TRANSPORTS}.datagen.transport:DATAGEN",
    "delta_table_input": f"{_TRANSPORTS}.delta_table.definitions:DELTA_TABLE_INPUT",
    "empty_input": f"{_TRANSPORTS}.empty_input:EMPTY_INPUT",
    "file_input": f"{_TRANSPORTS}.file_input:FILE_INPUT",
    "iceberg_input": f"{_TRANSPORTS}.iceberg.definitions:ICEBERG_INPUT",
    "kafka_input": f"{_TRANSPORTS}.kafka.definitions:KAFKA_INPUT",
    "nexmark": f"{_TRANSPORTS}.nexmark.transport:NEXMARK",
    "pipeline_input": f"{_TRANSPORTS}.pipeline_input:PIPELINE_INPUT",
    "postgres_cdc_input": f"{_TRANSPORTS}.postgresql.definitions:POSTGRES_CDC_INPUT",
    "postgres_input": f"{_TRANSPORTS}.postgresql.definitions:POSTGRES_INPUT",
    "s3_input": f"{_TRANSPORTS}.s3_input:S3_INPUT",
    "url_input": f"{_TRANSPORTS}.url_input:URL_INPUT",
}
"""``module:ATTRIBUTE`` of an ``InputDefinition`` by the name of its transport."""

BUILT_IN_OUTPUTS: Final[Mapping[str, str]] = {
    "delta_table_output": f"{_TRANSPORTS}.delta_table.definitions:DELTA_TABLE_OUTPUT",
    "file_output": f"{_TRANSPORTS}.file_output:FILE_OUTPUT",
    "http_output": f"{_TRANSPORTS}.http_output:HTTP_OUTPUT",
    "iceberg_output": f"{_TRANSPORTS}.iceberg.definitions:ICEBERG_OUTPUT",
    "kafka_output": f"{_TRANSPORTS}.kafka.definitions:KAFKA_OUTPUT",
    "null_output": f"{_TRANSPORTS}.null_output:NULL_OUTPUT",
    "postgres_output": f"{_TRANSPORTS}.postgresql.definitions:POSTGRES_OUTPUT",
    "redis_output": f"{_TRANSPORTS}.redis_output:REDIS_OUTPUT",
}
"""``module:ATTRIBUTE`` of an ``OutputDefinition`` by the name of its transport."""

BUILT_IN_FORMATS: Final[Mapping[str, str]] = {
    "avro": f"{_FORMATS}.avro.definition:AVRO",
    "csv": f"{_FORMATS}.plain:CSV",
    "json": f"{_FORMATS}.plain:JSON",
    "orc": f"{_FORMATS}.plain:ORC",
    "parquet": f"{_FORMATS}.plain:PARQUET",
    "protobuf": f"{_FORMATS}.protobuf.definition:PROTOBUF",
    "raw": f"{_FORMATS}.plain:RAW",
}
"""``module:ATTRIBUTE`` of a ``FormatDefinition`` by the name of the format."""
