"""VALUE_BYTES: a function of SQL for what Spark cannot group by, VARIANTs and all that holds them.

The JSON text of a VARIANT does not say all of it: a date has the text of a string. Its bytes do, and of values in canonical form
equal bytes are equal values.
"""

from __future__ import annotations

import sys

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession
from pyspark.sql.types import BinaryType

from airflow_pipelines.engine.spark.python_udfs import register_arrow, send_by_value

VALUE_BYTES = "__value_bytes"
"""The function's name in SQL: any value to BINARY, NULL to NULL."""
_PARTS = {("value", pa.binary()), ("metadata", pa.binary())}
"""The fields of a VARIANT."""


def register_value_bytes(session: SparkSession) -> None:
    """Let queries of ``session`` call the function."""
    register_arrow(session, VALUE_BYTES, _value_bytes, BinaryType())


def _value_bytes(values: pa.Array) -> pa.Array:
    if pa.types.is_struct(values.type) and {(one.name, one.type) for one in values.type} == _PARTS:
        parts = [pc.struct_field(values, [name]) for name in ("metadata", "value")]
        # No dictionary of keys is the beginning of another one: each says how long it is.
        return pc.if_else(values.is_valid(), pc.binary_join_element_wise(*parts, b""), pa.scalar(None, pa.binary()))
    # Nested values are rare; the text of a Python literal tells all types apart that can stand in one column.
    return pa.array([None if value is None else repr(value).encode() for value in values.to_pylist()], pa.binary())


send_by_value(sys.modules[__name__])
