"""The values of a query's result in types that readers know: VARIANTs are strings, unsigned integers have their own types."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat
from pyspark.sql.types import StructType

from airflow_pipelines.engine.spark.schemas import column_from_spark_json
from airflow_pipelines.rows.arrow import is_variant
from airflow_pipelines.rows.formats import variant

_UNSIGNED: Mapping[str, pa.DataType] = {
    "UTINYINT": pa.uint8(),
    "USMALLINT": pa.uint16(),
    "UINTEGER": pa.uint32(),
    "UBIGINT": pa.uint64(),
}
Convert = Callable[[pa.Array], pa.Array]


def with_variants_as_json(table: pa.Table) -> pa.Table:
    """Return the table with each VARIANT, also within nested values, as the text of its JSON.

    :param table: a result; names may repeat
    :returns: the table, in which NULL stays NULL, and a JSON null is the text ``null``
    """
    return _convert_columns(table, is_variant, _json)


def with_timestamps_as_text(table: pa.Table) -> pa.Table:
    """Return the table with each timestamp, also within nested values, as ISO 8601 text: ``2026-01-02T03:04:05.678``.

    :param table: a result; names may repeat
    :returns: the table; fractions have milliseconds, or microseconds if there are any, and ``Z`` is appended with a time zone
    """
    return _convert_columns(table, pat.is_timestamp, _iso)


def with_unsigned_integers(table: pa.Table, schema: StructType) -> pa.Table:
    """Return the table with unsigned integers, which Spark holds in wider types, in Arrow's own types for them.

    :param table: a result; names may repeat
    :param schema: its schema in Spark, with hints about types
    """
    for at, field in enumerate(schema.fields):
        kind = _UNSIGNED.get(column_from_spark_json(field.jsonValue()).type.name) if field.metadata else None
        if kind is not None:
            table = table.set_column(at, table.schema.field(at).with_type(kind), table.column(at).cast(kind))
    return table


def has_map_without_text_keys(schema: pa.Schema) -> bool:
    """Return True if any column is or holds a map whose keys are not strings, which JSON cannot represent."""
    return any(_holds(field.type, lambda kind: pat.is_map(kind) and not pat.is_string(kind.key_type)) for field in schema)


def _holds(kind: pa.DataType, wanted: Callable[[pa.DataType], bool]) -> bool:
    if wanted(kind):
        return True
    if pat.is_map(kind):
        return _holds(kind.key_type, wanted) or _holds(kind.item_type, wanted)
    return pat.is_nested(kind) and any(_holds(kind.field(at).type, wanted) for at in range(kind.num_fields))


def _convert_columns(table: pa.Table, wanted: Callable[[pa.DataType], bool], convert: Convert) -> pa.Table:
    if not any(_holds(field.type, wanted) for field in table.schema):
        return table
    columns = []
    for column in table.columns:
        if _holds(column.type, wanted):
            whole = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
            columns.append(_convert_nested(whole, wanted, convert))
        else:
            columns.append(column)
    return pa.Table.from_arrays(columns, names=table.column_names)


def _convert_nested(array: pa.Array, wanted: Callable[[pa.DataType], bool], convert: Convert) -> pa.Array:
    kind = array.type
    if wanted(kind):
        return convert(array)
    if not _holds(kind, wanted):
        return array
    if pat.is_struct(kind):
        members = [_convert_nested(pc.struct_field(array, [at]), wanted, convert) for at in range(kind.num_fields)]
        fields = [pa.field(field.name, member.type) for field, member in zip(kind, members, strict=True)]
        return pa.StructArray.from_arrays(members, fields=fields, mask=array.is_null())
    if pat.is_map(kind):
        keys, items = _convert_nested(array.keys, wanted, convert), _convert_nested(array.items, wanted, convert)
        return pa.MapArray.from_arrays(array.offsets, keys, items, mask=array.is_null())
    return pa.ListArray.from_arrays(array.offsets, _convert_nested(array.values, wanted, convert), mask=array.is_null())


def _json(array: pa.Array) -> pa.Array:
    return pa.array([None if value is None else variant.to_json(value) for value in array.to_pylist()], pa.string())


def _iso(array: pa.Array) -> pa.Array:
    zoned = array.type.tz is not None
    texts = pc.cast(pc.cast(array, pa.timestamp("us", tz=array.type.tz), safe=False).cast(pa.timestamp("us")), pa.string())
    texts = pc.replace_substring_regex(texts, r"(\.000)?000$", "")
    texts = pc.replace_substring(texts, " ", "T", max_replacements=1)
    return pc.binary_join_element_wise(texts, "Z", "") if zoned else texts
