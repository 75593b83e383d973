"""Records of any type, as people and programs write them: fitting ones, odd ones and wrong ones, as JSON text."""

from __future__ import annotations

import json
from collections.abc import Sequence

from hypothesis import strategies as st

from airflow_pipelines.rows.schema import Column, RelationSchema
from airflow_pipelines.rows.types import ColumnType

SCALARS = [
    *(ColumnType(name) for name in ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "UBIGINT", "REAL", "DOUBLE")),
    *(ColumnType("DECIMAL", True, *size) for size in ((5, 2), (38, 38), (38, 0))),
    *(ColumnType(name) for name in ("VARCHAR", "UUID", "VARBINARY", "DATE", "TIME", "TIMESTAMP", "TIMESTAMP_TZ", "BOOLEAN")),
    *(ColumnType(name, True, size) for name, size in (("VARCHAR", 2), ("CHAR", 3), ("BINARY", 2))),
    *(ColumnType(name) for name in ("INTERVAL_DAY_SECOND", "INTERVAL_YEAR_MONTH", "INTERVAL_HOUR")),
]
KEYS = [ColumnType(name, False) for name in ("BIGINT", "VARCHAR", "DOUBLE", "DATE")]
VARIANT = ColumnType("VARIANT")

_TEXTS = [
    "", "null", "NULL", "a", "é", "\0", "ab", "abcd", "2026-01-02", "0001-01-01", "9999-12-31", "10:11:12.123456789", "24:00:00",
    "2026-01-02 03:04:05", "9999-12-31 23:59:59-01:00", "0001-01-01T00:00:00+01:00", "01900000-0000-7000-8000-000000000001", "1",
    "-1.5", "1e400", "true", "P1D", "P1Y", "PT1H", "P99999999999D", "1-2", "-0", "\ud800", "[1]", "{}", "[null]", "9" * 50, "NaN",
]  # fmt: skip
_NUMBERS = [
    "0", "-0.0", "1", "-1", "255", "256", "1.5", "1e2", "1e400", "1e-400", "1E+2147483648", str(2**63 - 1), str(2**63), "9" * 50,
    "0.00000000000000000000000000000000000001", "123.455", "12345",
]  # fmt: skip
_FITTING = {
    "REAL": ["0", "-0.0", "1.5"], "DOUBLE": ["0", "-0.0", "1e2"], "DECIMAL": ["0", "0.1", '"0.5"'], "VARCHAR": ['""', '"a"', '"é"'],
    "CHAR": ['"a"', '""'], "UUID": ['"01900000-0000-7000-8000-000000000001"'], "BINARY": ["[]", "[1]"], "VARBINARY": ["[1, 2]"],
    "DATE": ['"2026-01-02"', '"0001-01-01"'], "TIME": ['"10:11:12"'], "TIMESTAMP": ['"2026-01-02 03:04:05.5"', '"2026-01-02"'],
    "TIMESTAMP_TZ": ['"2026-01-02"'], "BOOLEAN": ["true", "false"], "INTERVAL_DAY_SECOND": ['"P1D"'],
    "INTERVAL_YEAR_MONTH": ['"P1Y"'], "INTERVAL_HOUR": ['"PT1H"'],
}  # fmt: skip
_FLAGS = st.booleans()


def _object(members: Sequence[tuple[str, str]]) -> str:
    return "{" + ",".join(f"{json.dumps(name)}:{value}" for name, value in members) + "}"


def _array(items: Sequence[str]) -> str:
    return "[" + ",".join(items) + "]"


_ATOMS = st.one_of(
    st.just("null"), st.sampled_from(["true", "false"]), st.sampled_from(_NUMBERS), st.sampled_from(_TEXTS).map(json.dumps)
)
ANYTHING = st.recursive(
    _ATOMS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(_array),
        st.lists(st.tuples(st.sampled_from([*_TEXTS, "x", "Y y", "y Y"]), inner), max_size=3).map(_object),
    ),
    max_leaves=5,
)
"""Any JSON value, and some that are none: numbers beyond any exponent, half a surrogate."""


def _nested(inner: st.SearchStrategy[ColumnType]) -> st.SearchStrategy[ColumnType]:
    plain = st.sampled_from([kind.with_nullable(False) for kind in SCALARS])
    keys = st.one_of(
        plain,
        plain.map(lambda kind: ColumnType("ARRAY", False, component=kind)),
        plain.map(lambda kind: ColumnType("STRUCT", False, fields=(("a", kind),))),
    )
    return st.one_of(
        st.builds(lambda flag, part: ColumnType("ARRAY", flag, component=part), _FLAGS, inner),
        st.builds(lambda flag, x, y: ColumnType("STRUCT", flag, fields=(("x", x), ("Y y", y))), _FLAGS, inner, inner),
        st.builds(lambda flag, key, value: ColumnType("MAP", flag, key=key, value=value), _FLAGS, keys, inner),
    )


KINDS = st.recursive(
    st.builds(lambda kind, flag: kind.with_nullable(flag), st.sampled_from([*SCALARS, VARIANT]), _FLAGS), _nested, max_leaves=4
)


def _fitting(kind: ColumnType) -> st.SearchStrategy[str]:
    if kind.fields is not None:
        members = [st.tuples(st.just(name), values(inner)) for name, inner in kind.fields]
        # A member that is left out is NULL.
        return st.tuples(*members).flatmap(lambda all_members: st.sampled_from([all_members, all_members[1:]]).map(_object))
    if kind.component is not None:
        return st.lists(values(kind.component), max_size=2).map(_array)
    if kind.key is not None and kind.value is not None:
        names = _fitting(kind.key).map(lambda text: json.loads(text) if text.startswith('"') else text) | st.sampled_from(_TEXTS)
        return st.lists(st.tuples(names, values(kind.value)), max_size=2).map(_object)
    return st.sampled_from(_FITTING.get(kind.name, ["0", "1", "2"])) if kind.name != "VARIANT" else ANYTHING


def values(kind: ColumnType) -> st.SearchStrategy[str]:
    """Values for a type: mostly fitting, NULLs at each level, and anything."""
    fitting = _fitting(kind)
    return st.one_of(fitting, fitting, fitting, fitting, st.just("null"), ANYTHING)


@st.composite
def records(draw: st.DrawFn, schema: RelationSchema, max_size: int = 4) -> list[tuple[str, str]]:
    """Operations on a table with their rows, columns missing now and then."""
    operations = ["insert", "insert", "insert", "delete", *(["update"] if schema.primary_key else [])]
    made = []
    for _ in range(draw(st.integers(1, max_size))):
        members = [(column.name, draw(values(column.type))) for column in schema.columns if draw(st.integers(0, 9))]
        made.append((draw(st.sampled_from(operations)), _object(members)))
    return made


@st.composite
def histories(draw: st.DrawFn) -> tuple[RelationSchema, list[list[tuple[str, str]]]]:
    """A table of any columns, with a key or without, and steps of operations on it."""
    keyed = draw(_FLAGS)
    key = draw(st.sampled_from(KEYS)).with_nullable(not keyed)
    kinds = draw(st.lists(KINDS, min_size=1, max_size=2))
    columns = (Column("k", key), *(Column(f"c{at}", kind) for at, kind in enumerate(kinds)))
    schema = RelationSchema("t", columns, ("k",) if keyed else ())
    return schema, draw(st.lists(records(schema), min_size=1, max_size=3))
