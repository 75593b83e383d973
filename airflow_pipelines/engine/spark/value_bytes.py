"""VALUE_BYTES: a SQL function for values that Spark cannot group by, which are VARIANTs and types that contain them.

The JSON text of a VARIANT does not identify it: a date has the same text as a string. Its bytes do: values in canonical form are
equal if and only if their bytes are.
"""

from __future__ import annotations

import sys

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession
from pyspark.sql.types import BinaryType

from airflow_pipelines.engine.spark.python_udfs import register_arrow, send_by_value

VALUE_BYTES = "__value_bytes"
"""The function's name in SQL. It returns BINARY for any value, and NULL for NULL."""
_PARTS = {("value", pa.binary()), ("metadata", pa.binary())}
"""The fields of a VARIANT."""


def register_value_bytes(session: SparkSession) -> None:
    """Register the function for the queries of ``session``."""
    register_arrow(session, VALUE_BYTES, _value_bytes, BinaryType())


def _value_bytes(values: pa.Array) -> pa.Array:
    if pa.types.is_struct(values.type) and {(one.name, one.type) for one in values.type} == _PARTS:
        parts = [pc.struct_field(values, [name]) for name in ("metadata", "value")]
        # The dictionary of keys begins with its length, so the joined bytes of two different values are never equal.
        return pc.if_else(values.is_valid(), pc.binary_join_element_wise(*parts, b""), pa.scalar(None, pa.binary()))
    # Nested values are rare. Within one column the text of a Python literal identifies the value.
    return pa.array([None if value is None else repr(value).encode() for value in values.to_pylist()], pa.binary())


send_by_value(sys.modules[__name__])
