"""Plans carry expressions with trees: the engine and the passes over plans never parse a text."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "airflow_pipelines"
READERS = ("engine", "sql/plan/passes")
"""The folders that read plans."""


def parses(text: str) -> list[str]:
    """The functions that parse SQL, of those that a module calls."""
    calls = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            of = node.func.value.id if isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Name) else ""
            if name in {"parse_query", "parse_one", "maybe_parse"} or (of == "sqlglot" and name.startswith("parse")):
                calls.append(name)
    return calls


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("node.query.parse()", []),
        ("json.parse(text)", []),
        ("parse_query(text)", ["parse_query"]),
        ("sqlglot.parse_one(text)", ["parse_one"]),
        ("sqlglot.parse(text)", ["parse"]),
        ("exp.maybe_parse(text)", ["maybe_parse"]),
    ],
)
def test_parsing_is_recognised(text: str, names: list[str]) -> None:
    assert parses(text) == names


def test_nothing_that_reads_a_plan_parses_a_text() -> None:
    found = {
        str(file.relative_to(PACKAGE)): names
        for folder in READERS
        for file in sorted((PACKAGE / folder).rglob("*.py"))
        if (names := parses(file.read_text()))
    }
    assert found == {}, "give the node an Expression (sql/plan/ir/expression.py), which has a tree"
