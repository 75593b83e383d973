"""The generated TPC-H data: keys, references, formulas, and that any rows can be made again."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from airflow_pipelines.rows.changes import OP, Op
from benchmarks.tpch.generator import Generator
from benchmarks.tpch.queries import NAMES, queries, tables_of
from benchmarks.tpch.refresh import Refresh
from benchmarks.tpch.scale import Scale
from benchmarks.tpch.schema import DEFINITIONS, KEYS, TABLES

GENERATOR = Generator(Scale(20_000, seed=3))


@pytest.fixture(scope="module")
def tables() -> dict[str, pa.Table]:
    orders = [chunk for chunk in GENERATOR.chunks()]
    whole = {name: pa.concat_tables([chunk[name] for chunk in orders]) for name in ("orders", "lineitem")}
    return {**{name: GENERATOR.table(name) for name in TABLES[:6]}, **whole}


@pytest.mark.parametrize("name", TABLES)
def test_columns_are_those_of_the_schema_and_keys_are_unique(tables: dict[str, pa.Table], name: str) -> None:
    table = tables[name]
    assert table.column_names == [column.split()[0] for column in DEFINITIONS[name].split(", ")]
    assert sum(column.null_count for column in table.columns) == 0
    assert table.group_by(list(KEYS[name])).aggregate([]).num_rows == table.num_rows


@pytest.mark.parametrize(
    ("table", "columns", "referred", "keys"),
    [
        ("nation", ["n_regionkey"], "region", ["r_regionkey"]),
        ("supplier", ["s_nationkey"], "nation", ["n_nationkey"]),
        ("partsupp", ["ps_partkey"], "part", ["p_partkey"]),
        ("partsupp", ["ps_suppkey"], "supplier", ["s_suppkey"]),
        ("orders", ["o_custkey"], "customer", ["c_custkey"]),
        ("lineitem", ["l_orderkey"], "orders", ["o_orderkey"]),
        ("lineitem", ["l_partkey", "l_suppkey"], "partsupp", ["ps_partkey", "ps_suppkey"]),
    ],
)
def test_references_lead_somewhere(
    tables: dict[str, pa.Table], table: str, columns: list[str], referred: str, keys: list[str]
) -> None:
    assert tables[table].join(tables[referred], columns, keys, "left anti").num_rows == 0


def test_sizes_are_in_proportion(tables: dict[str, pa.Table]) -> None:
    assert 0.95 < tables["lineitem"].num_rows / 20_000 < 1.05
    assert tables["orders"].num_rows == 5_000
    assert tables["partsupp"].num_rows == 4 * tables["part"].num_rows
    buyers = pc.count_distinct(tables["orders"]["o_custkey"]).as_py()
    assert buyers == pytest.approx(tables["customer"].num_rows * 2 / 3, rel=0.01)


def test_orders_know_what_their_lines_cost(tables: dict[str, pa.Table]) -> None:
    order = tables["orders"].slice(100, 1).to_pylist()[0]
    lines = tables["lineitem"].filter(pc.equal(tables["lineitem"]["l_orderkey"], order["o_orderkey"])).to_pylist()
    costs = [line["l_extendedprice"] * (1 + line["l_tax"]) * (1 - line["l_discount"]) for line in lines]
    assert abs(order["o_totalprice"] - sum(costs)) <= Decimal("0.01") * len(costs)
    flags = {line["l_linestatus"] for line in lines}
    assert order["o_orderstatus"] == (flags.pop() if len(flags) == 1 else "P")


def test_any_rows_can_be_made_again(tables: dict[str, pa.Table]) -> None:
    again = GENERATOR.orders_with_lines(np.array([4_000, 17, 2_500]))
    keys = again["orders"]["o_orderkey"]
    assert again["orders"].sort_by("o_orderkey").equals(tables["orders"].filter(pc.is_in(tables["orders"]["o_orderkey"], keys)))
    other = Generator(Scale(20_000, seed=4)).orders_with_lines(np.array([17]))
    assert not other["lineitem"].equals(GENERATOR.orders_with_lines(np.array([17]))["lineitem"])


def test_refreshes_bring_new_keys_and_take_each_old_one_once(tables: dict[str, pa.Table]) -> None:
    refresh = Refresh(GENERATOR, frozenset({"orders", "lineitem"}))
    known = set(tables["orders"]["o_orderkey"].to_pylist())
    touched: list[int] = []
    for _ in range(10):
        changes = [change for change in refresh.changes(1_000)]
        assert 850 < sum(change.rows.num_rows for change in changes) < 1_150
        for change in changes:
            if change.table == "orders":
                touched += change.rows["o_orderkey"].to_pylist()
    assert len(touched) == len(set(touched))
    assert 0.3 < len(set(touched) - known) / len(touched) < 0.5


@pytest.mark.parametrize("query", NAMES)
def test_every_query_has_a_refresh(query: str) -> None:
    tables = frozenset(tables_of(queries(GENERATOR.scale)[query]))
    changes = Refresh(GENERATOR, tables).changes(1_000)
    assert 850 < sum(change.rows.num_rows for change in changes) < 1_150
    assert {change.table for change in changes} <= tables
    operations = {operation for change in changes for operation in change.rows[OP].unique().to_pylist()}
    assert operations == {int(Op.INSERT), int(Op.DELETE)}
