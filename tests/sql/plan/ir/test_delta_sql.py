from __future__ import annotations

from airflow_pipelines.sql.plan.ir.delta_sql import DeltaSql
from airflow_pipelines.sql.plan.ir.expression import Expression, WhereClause
from airflow_pipelines.sql.plan.ir.linear import Item, Scan, Select, Source, UnionAll
from airflow_pipelines.sql.plan.ir.version import Version

A, B, C = (Scan(name, ("k",)) for name in "abc")


def _join(*scans: Scan) -> Select:
    return Select(tuple(Source(scan.relation, scan) for scan in scans), (Item("k", Expression("`a`.`k`")),), WhereClause("(x)"))


def _printer(*empty: tuple[str, Version]) -> DeltaSql:
    return DeltaSql(lambda name, version: None if (name, version) in empty else f"{name}_{version.value}")


def _terms(query: str | None) -> list[list[str]]:
    """Which versions each term of a delta reads."""
    assert query is not None
    words = [word.strip("()`,") for word in query.replace("UNION ALL", "|").split()]
    versions = ("_delta", "_before", "_after")
    terms: list[list[str]] = [[]]
    for word in words:
        if word == "|":
            terms.append([])
        elif word.endswith(versions):
            terms[-1].append(word)
    return terms


def test_a_join_reads_before_left_of_the_delta_and_after_right_of_it() -> None:
    query = _printer().delta(_join(A, B, C), {"a", "b", "c"})
    assert _terms(query) == [
        ["a_delta", "b_after", "c_after"],
        ["a_before", "b_delta", "c_after"],
        ["a_before", "b_before", "c_delta"],
    ]


def test_only_changed_relations_have_terms() -> None:
    assert _terms(_printer().delta(_join(A, B, C), {"b"})) == [["a_after", "b_delta", "c_after"]]
    assert _printer().delta(_join(A, B), {"z"}) is None


def test_a_self_join_has_two_terms() -> None:
    node = Select((Source("x", A), Source("y", A)), (Item("k", Expression("`x`.`k`")),))
    assert _terms(_printer().delta(node, {"a"})) == [["a_delta", "a_after"], ["a_before", "a_delta"]]


def test_terms_that_read_something_empty_are_left_out() -> None:
    printer = _printer(("a", Version.BEFORE), ("b", Version.BEFORE))
    assert _terms(printer.delta(_join(A, B), {"a", "b"})) == [["a_delta", "b_after"]]


def test_a_rows_weight_is_the_product_of_its_sources_weights() -> None:
    query = _printer().delta(_join(A, B), {"a"})
    assert query is not None
    assert "`a`.__weight * `b`.__weight AS __weight" in query
    assert query.endswith("WHERE (x)")


def test_a_union_prints_only_the_parts_that_change_in_the_unions_types() -> None:
    node = UnionAll((A, B), (("n", "bigint"),))
    query = _printer().delta(node, {"b"})
    assert query is not None
    assert "a_" not in query
    assert "CAST(`c0` AS bigint) AS `n`" in query


def test_a_nested_join_is_derived_in_turn() -> None:
    inner = Select((Source("a", A), Source("b", B)), (Item("k", Expression("`a`.`k`")),))
    outer = Select((Source("n", inner), Source("c", C)), (Item("k", Expression("`n`.`k`")),))
    found = _terms(_printer().delta(outer, {"b", "c"}))
    assert found == [["a_after", "b_delta", "c_after"], ["a_before", "b_before", "c_delta"]]
