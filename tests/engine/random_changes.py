"""Random changes, and tables by the simplest possible rules, for the oracle test."""

from __future__ import annotations

import decimal
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from hypothesis import strategies as st
from pyspark.sql.types import VariantVal

from airflow_pipelines.engine.trace import Trace
from airflow_pipelines.rows.changes import Op, TableChanges
from airflow_pipelines.rows.variant_binary import to_canonical_form
from tests.engine.programs import Running
from tests.engine.random_programs import COLUMNS, KEY_VALUES, SEEN, TABLES, TYPES

EXACT = decimal.Context(prec=60)


def row_of(table: str) -> st.SearchStrategy[tuple[Any, ...]]:
    key = TABLES[table] or ()
    values = [st.integers(0, 3)]
    for name, (_, strategy) in {**TYPES, **SEEN}.items():
        values.append(KEY_VALUES[name] if name in key else strategy)
    return st.tuples(*values)


@st.composite
def change(draw: Any) -> tuple[str, str, list[tuple[Any, ...]], list[str]]:
    table = draw(st.sampled_from(sorted(TABLES)))
    operation = draw(st.sampled_from(["insert", "insert", "insert", "delete", "update"]))
    rows = draw(st.lists(row_of(table), min_size=1, max_size=6))
    given_columns = draw(st.lists(st.sampled_from(["i", "b", "d", "f", "o", *SEEN]), unique=True))
    return table, operation, rows, given_columns


def changes() -> st.SearchStrategy[list[tuple[str, str, list[tuple[Any, ...]], list[str]]]]:
    """The changes of one step; a step without any is rare."""
    some = st.lists(change(), min_size=1, max_size=4)
    return st.one_of(some, some, some, some, st.just([]))


class Tables:
    """What the tables should hold, by the simplest possible rules."""

    def __init__(self) -> None:
        self.rows: dict[str, list[tuple[Any, ...]]] = {name: [] for name in TABLES}

    def apply(self, table: str, operation: str, rows: list[tuple[Any, ...]], given_columns: list[str]) -> None:
        current = self.rows[table]
        at = [COLUMNS.index(name) for name in TABLES[table] or ()]
        for row in rows:
            same = [old for old in current if [old[i] for i in at] == [row[i] for i in at]] if at else []
            if operation == "insert":
                for old in same:
                    current.remove(old)
                current.append(row)
            elif operation == "delete":
                for old in same if at else [old for old in current if comparable(old) == comparable(row)][:1]:
                    current.remove(old)
            else:
                for old in same:
                    place = current.index(old)
                    current[place] = tuple(row[i] if COLUMNS[i] in given_columns else old[i] for i in range(len(COLUMNS)))


def comparable(row: Any) -> tuple[Any, ...]:
    """Values that compare as SQL groups do."""
    return tuple(_comparable(value) for value in row)


def _comparable(value: Any) -> Any:
    if isinstance(value, float):
        return "nan" if value != value else value + 0.0
    if isinstance(value, decimal.Decimal):
        return EXACT.normalize(value)
    if isinstance(value, VariantVal):
        return _comparable({"value": bytes(value.value), "metadata": bytes(value.metadata)})
    if isinstance(value, bytearray):
        return bytes(value)
    if isinstance(value, dict):
        variant = to_canonical_form(value) if value.keys() == {"value", "metadata"} else value
        return tuple(sorted((key, _comparable(item)) for key, item in variant.items()))
    if isinstance(value, list):
        # Arrow gives a map as a list of pairs, in the order in which it was written.
        found = [tuple(map(_comparable, item)) if isinstance(item, tuple) else _comparable(item) for item in value]
        return tuple(sorted(found) if value and all(isinstance(item, tuple) for item in value) else found)
    return value


def exact(row: Any) -> tuple[Any, ...]:
    """Values that compare as the most curious function does: zeros with their signs, maps with their order, types of VARIANTs."""
    return tuple(_exact(value) for value in row)


def _exact(value: Any) -> Any:
    if isinstance(value, float):
        return "nan" if value != value else repr(value)
    if isinstance(value, decimal.Decimal):
        return EXACT.normalize(value)
    if isinstance(value, dict):
        variant = to_canonical_form(value) if value.keys() == {"value", "metadata"} else value
        return tuple((key, _exact(item)) for key, item in variant.items())
    if isinstance(value, list | tuple):
        return tuple(map(_exact, value))
    return value


def multiset(rows: Iterable[Sequence[Any]]) -> Counter[tuple[Any, ...]]:
    return Counter(comparable(row) for row in rows)


def real_changes(running: Running, part: Any, contents: Tables) -> list[TableChanges]:
    table, operation, rows, given_columns = part
    if operation == "update" and TABLES[table] is None:
        operation = "delete"
    if operation == "delete" and TABLES[table] is None:
        # Random rows would rarely be there.
        rows = [*contents.rows[table][: len(rows)], *rows[:1]]
    contents.apply(table, operation, rows, given_columns)
    if operation == "update":
        return [running.changes(table, *rows, op=Op.UPDATE, given=given_columns)]
    return [running.changes(table, *rows, op=Op.INSERT if operation == "insert" else Op.DELETE)]


def net(trace: Trace, key_of: Callable[[Any], tuple[Any, ...]] = exact) -> dict[tuple[Any, ...], tuple[Any, ...]]:
    """The rows of a trace with their sums, added up here.

    :param key_of: what of a row's values tells it from others
    """
    sums: dict[tuple[Any, ...], list[Any]] = {}
    for batch in trace.batches:
        for row in batch.to_arrow().to_pylist():
            key = key_of(row[name] for name in trace.keys)
            values = [row[name] or 0 for name in trace.merges]
            sums[key] = [a + b for a, b in zip(sums[key], values, strict=True)] if key in sums else values
    return {key: tuple(values) for key, values in sums.items() if any(values)}


def everything_goes(running: Running, contents: Tables) -> list[TableChanges]:
    """The deletion of all rows of all tables."""
    gone = [running.changes(name, *rows, op=Op.DELETE) for name, rows in contents.rows.items() if rows]
    contents.rows = {name: [] for name in contents.rows}
    return gone
