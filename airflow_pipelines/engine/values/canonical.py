"""The canonical form of values (see ``sql/values/canonical_form.py``), for Arrow columns and DataFrames."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from airflow_pipelines.engine.spark.type_text import type_text
from airflow_pipelines.rows.arrow import ArrowColumn, is_variant
from airflow_pipelines.rows.variant_binary import to_canonical_form
from airflow_pipelines.sql.values import canonical_form


def has_several_forms(kind: pa.DataType) -> bool:
    """Return True if an Arrow type has values with more than one representation."""
    if pa.types.is_floating(kind) or pa.types.is_map(kind) or is_variant(kind):
        return True
    return pa.types.is_nested(kind) and any(has_several_forms(kind.field(at).type) for at in range(kind.num_fields))


def in_canonical_form(column: ArrowColumn) -> ArrowColumn:
    """Return a column with its values in canonical form."""
    if not has_several_forms(column.type):
        return column
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    return pa.chunked_array([_array(pa.concat_arrays([chunk])) for chunk in chunks], column.type)


def canonical_frame(frame: DataFrame) -> DataFrame:
    """Return a DataFrame with its values in canonical form. Several columns may have one name."""
    columns = [(field.name, type_text(field.dataType)) for field in frame.schema.fields]
    if not any(canonical_form.has_several_forms(kind) for _, kind in columns):
        return frame
    plain = frame.toDF(*(f"__f{at}" for at in range(len(columns))))
    items = (canonical_form.in_canonical_form(f"__f{at}", kind) for at, (_, kind) in enumerate(columns))
    return plain.selectExpr(*items).toDF(*(name for name, _ in columns))


def _array(array: pa.Array) -> pa.Array:
    """Return an array with its values in canonical form. It must not be a slice of another array."""
    kind = array.type
    if not has_several_forms(kind) or not len(array):
        return array
    if pa.types.is_floating(kind):
        # Adding zero turns a negative zero into a positive one.
        values = pc.add(array, pa.scalar(0.0, kind))
        return pc.if_else(pc.is_nan(values), pa.scalar(float("nan"), kind), values)
    if is_variant(kind):
        return pa.array([None if value is None else to_canonical_form(value) for value in array.to_pylist()], kind)
    if pa.types.is_struct(kind):
        parts = [_array(pa.concat_arrays([pc.struct_field(array, [at])])) for at in range(kind.num_fields)]
        return pa.StructArray.from_arrays(parts, fields=list(kind), mask=array.is_null())
    if pa.types.is_map(kind):
        return _canonicalise_map(array)
    return type(array).from_arrays(array.offsets, _array(array.values), type=kind, mask=array.is_null())


def _canonicalise_map(array: pa.MapArray) -> pa.MapArray:
    """Return the maps with their entries sorted by key, as Spark compares keys."""
    offsets, present = np.asarray(array.offsets), array.is_valid().to_numpy(zero_copy_only=False)
    lengths = np.where(present, np.diff(offsets), 0)
    ends = np.cumsum(lengths)
    owner = np.repeat(np.arange(len(array)), lengths)
    places = np.repeat(offsets[:-1] - (ends - lengths), lengths) + np.arange(len(owner))
    keys = _array(array.keys.take(pa.array(places, pa.int64())))
    order = _order(owner, keys)
    items = _array(array.items.take(pa.array(places[order], pa.int64())))
    starts = pa.array(np.concatenate(([0], ends)), pa.int32())
    return pa.MapArray.from_arrays(starts, keys.take(pa.array(order)), items, type=array.type, mask=array.is_null())


def _order(owner: npt.NDArray[np.int64], keys: pa.Array) -> npt.NDArray[np.int64]:
    """Return the places of keys, sorted by the map that they belong to and within a map by key.

    :param owner: the number of each key's map
    :param keys: the keys of all maps
    """
    if pa.types.is_nested(keys.type):
        values = [_to_sortable(key, keys.type) for key in keys.to_pylist()]
        return np.array(sorted(range(len(values)), key=lambda at: (owner[at], values[at])), np.int64)
    both = pa.table({"owner": owner, "key": keys})
    order: npt.NDArray[np.int64] = pc.sort_indices(both, [("owner", "ascending"), ("key", "ascending")]).to_numpy().astype(np.int64)
    return order


def _to_sortable(value: Any, kind: pa.DataType) -> tuple[Any, ...]:
    """Return a key of a map as a Python value that compares as Spark compares keys: NULL first, NaN last, texts by their bytes."""
    if value is None:
        return (0,)
    if pa.types.is_struct(kind):
        return (1, *(_to_sortable(value[field.name], field.type) for field in kind))
    if pa.types.is_nested(kind):
        return (1, *(_to_sortable(inner, kind.value_type) for inner in value))
    if pa.types.is_floating(kind):
        return (1, value != value, 0.0 if value != value else value)
    return (1, value.encode() if isinstance(value, str) else value)
