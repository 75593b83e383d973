"""VALUE_BYTES: a function of SQL for what Spark cannot group by, VARIANTs and all that holds them.

The JSON text of a VARIANT does not say all of it: a date has the text of a string. Its bytes do, and of values in canonical form
equal bytes are equal values.
"""

from __future__ import annotations

import sys
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark import cloudpickle
from pyspark.sql import SparkSession
from pyspark.sql.pandas.functions import arrow_udf
from pyspark.sql.types import BinaryType

VALUE_BYTES = "__value_bytes"
"""The function's name in SQL: any value to BINARY, NULL to NULL."""
_PARTS = {("value", pa.binary()), ("metadata", pa.binary())}
"""The fields of a VARIANT."""


def register_value_bytes(session: SparkSession) -> None:
    """Let queries of ``session`` call the function."""
    # The types of the decorator know only some of its uses.
    make: Any = arrow_udf
    session.udf.register(VALUE_BYTES, make(_value_bytes, BinaryType()))


def _value_bytes(values: pa.Array) -> pa.Array:
    if pa.types.is_struct(values.type) and {(one.name, one.type) for one in values.type} == _PARTS:
        parts = [pc.struct_field(values, [name]) for name in ("metadata", "value")]
        # No dictionary of keys is the beginning of another one: each says how long it is.
        return pc.if_else(values.is_valid(), pc.binary_join_element_wise(*parts, b""), pa.scalar(None, pa.binary()))
    # Nested values are rare; the text of a Python literal tells all types apart that can stand in one column.
    return pa.array([None if value is None else repr(value).encode() for value in values.to_pylist()], pa.binary())


# Workers need not have this package. (PySpark's copy of cloudpickle has no types.)
_by_value: Any = cloudpickle.register_pickle_by_value
_by_value(sys.modules[__name__])
