"""Values that come in are brought into the form in which Spark's expressions bring what queries compute."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import StructType

from airflow_pipelines.engine.spark.collecting import collected
from airflow_pipelines.engine.spark.sessions import SparkSessions
from airflow_pipelines.engine.values.canonical import in_canonical_form
from airflow_pipelines.sql.values import canonical_form

NAN = float("nan")
TEXTS = pa.map_(pa.string(), pa.int32())
NESTED = pa.map_(pa.struct([("x", pa.float64()), ("y", pa.string())]), pa.list_(pa.float32()))
DEEP = pa.struct([("m", pa.map_(pa.string(), pa.list_(pa.float64()))), ("n", pa.int32())])
COLUMNS: dict[str, tuple[Any, str, list[Any]]] = {
    "d": (pa.float64(), "double", [0.0, -0.0, None, -NAN, 1.5]),
    "f": (pa.float32(), "float", [0.0, -0.0, None, -NAN, -1.5]),
    "s": (
        pa.struct([("a", pa.float64()), ("b", pa.int32())]),
        "struct<a:double,b:int>",
        [{"a": -0.0, "b": 1}, None, {}, {"a": NAN}, {"b": 2}],
    ),
    "a": (pa.list_(pa.float64()), "array<double>", [[-0.0, None], None, [], [0.0], [NAN, -NAN]]),
    "m": (
        TEXTS,
        "map<string,int>",
        [[("b", 1), ("a", 2)], None, [], [("z", None), ("é", 3), ("A", 0)], [("\U0001f600", 1), ("\uffee", 2)]],
    ),
    "n": (
        NESTED,
        "map<struct<x:double,y:string>,array<float>>",
        [[({"x": 2.0, "y": "a"}, [-0.0]), ({"x": -0.0}, None), ({"x": NAN}, [])], None, [], [], []],
    ),
    "o": (
        DEEP,
        "struct<m:map<string,array<double>>,n:int>",
        [{"m": [("b", [-0.0]), ("a", None)], "n": 1}, None, {"n": 2}, {"m": []}, {}],
    ),
    "k": (
        pa.map_(pa.int64(), pa.bool_()),
        "map<bigint,boolean>",
        [[(10, True), (9, None), (-1, False)], None, [], [(0, True)], []],
    ),
}


def exact(value: Any) -> Any:
    """Values that are equal only when they are the same bits; there is one NaN."""
    match value:
        case float():
            return "NaN" if value != value else repr(value)
        case dict():
            return tuple((name, exact(item)) for name, item in value.items())
        case list() | tuple():
            return tuple(map(exact, value))
        case _:
            return value


@pytest.mark.core
def test_both_ways_give_the_same(sessions: SparkSessions) -> None:
    table = pa.table({name: pa.array(values, kind) for name, (kind, _, values) in COLUMNS.items()})
    schema = StructType.fromDDL(", ".join(f"`{name}` {kind}" for name, (_, kind, _) in COLUMNS.items()))
    sessions.small.createDataFrame(table, schema).createOrReplaceTempView("representations")
    items = ", ".join(f"{canonical_form.in_canonical_form(name, kind)} AS {name}" for name, (_, kind, _) in COLUMNS.items())
    theirs = collected(sessions.small.sql(f"SELECT {items} FROM representations"))
    for name in COLUMNS:
        ours = in_canonical_form(table[name])
        assert exact(ours.to_pylist()) == exact(theirs[name].to_pylist()), name
        assert ours.type == table[name].type


@pytest.mark.parametrize("name", COLUMNS)
def test_slices_and_chunks_are_as_good_as_whole_columns(name: str) -> None:
    kind, _, values = COLUMNS[name]
    whole = pa.array(values, kind)
    expected = exact(in_canonical_form(whole).to_pylist())
    for column in (pa.chunked_array([whole.slice(0, 2), whole.slice(2)]), pa.concat_arrays([whole, whole]).slice(5)):
        found = in_canonical_form(column)
        found.validate(full=True)
        assert exact(found.to_pylist()) == expected
    assert in_canonical_form(whole.slice(0, 0)).to_pylist() == []
