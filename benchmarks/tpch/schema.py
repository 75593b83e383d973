"""The eight tables with the primary keys that the benchmark defines."""

from __future__ import annotations

from collections.abc import Iterable

# Identifiers are BIGINT, money is DECIMAL(15, 2), fixed and variable text are VARCHAR.
DEFINITIONS = {
    "region": "r_regionkey bigint, r_name varchar, r_comment varchar",
    "nation": "n_nationkey bigint, n_name varchar, n_regionkey bigint, n_comment varchar",
    "part": (
        "p_partkey bigint, p_name varchar, p_mfgr varchar, p_brand varchar, p_type varchar, p_size int, p_container varchar, "
        "p_retailprice decimal(15,2), p_comment varchar"
    ),
    "supplier": (
        "s_suppkey bigint, s_name varchar, s_address varchar, s_nationkey bigint, s_phone varchar, s_acctbal decimal(15,2), "
        "s_comment varchar"
    ),
    "partsupp": "ps_partkey bigint, ps_suppkey bigint, ps_availqty int, ps_supplycost decimal(15,2), ps_comment varchar",
    "customer": (
        "c_custkey bigint, c_name varchar, c_address varchar, c_nationkey bigint, c_phone varchar, c_acctbal decimal(15,2), "
        "c_mktsegment varchar, c_comment varchar"
    ),
    "orders": (
        "o_orderkey bigint, o_custkey bigint, o_orderstatus varchar, o_totalprice decimal(15,2), o_orderdate date, "
        "o_orderpriority varchar, o_clerk varchar, o_shippriority int, o_comment varchar"
    ),
    "lineitem": (
        "l_orderkey bigint, l_partkey bigint, l_suppkey bigint, l_linenumber int, l_quantity decimal(15,2), "
        "l_extendedprice decimal(15,2), l_discount decimal(15,2), l_tax decimal(15,2), l_returnflag varchar, "
        "l_linestatus varchar, l_shipdate date, l_commitdate date, l_receiptdate date, l_shipinstruct varchar, "
        "l_shipmode varchar, l_comment varchar"
    ),
}
"""Columns of each table. All are NOT NULL."""

KEYS = {
    "region": ("r_regionkey",),
    "nation": ("n_nationkey",),
    "part": ("p_partkey",),
    "supplier": ("s_suppkey",),
    "partsupp": ("ps_partkey", "ps_suppkey"),
    "customer": ("c_custkey",),
    "orders": ("o_orderkey",),
    "lineitem": ("l_orderkey", "l_linenumber"),
}
"""Primary keys."""

TABLES = tuple(DEFINITIONS)


def table_statements(tables: Iterable[str] = TABLES) -> str:
    """``CREATE TABLE`` statements of some tables, one per line."""
    return "".join(f"{_statement(name)}\n" for name in TABLES if name in set(tables))


def _statement(name: str) -> str:
    # A comma inside decimal(15,2) is not followed by a space.
    columns = [f"{column} not null" for column in DEFINITIONS[name].split(", ")]
    return f"create table {name} ({', '.join(columns)}, primary key ({', '.join(KEYS[name])}));"
