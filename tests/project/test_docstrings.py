"""The worst habits of docstrings and names do not come back; ruff holds the rest (``D401``)."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MODULES = sorted((ROOT / "airflow_pipelines").rglob("*.py"))
QUESTION = re.compile(r"(What|Whether|How|Where|That|So|Why|When|Which|Who)\b")
SHARED = {"Batch", "Node", "Operator", "Resources", "Row", "RuntimeConfig", "Sink", "Snapshot", "Source", "Step", "Storage"}
"""The names of more than one class: words of DBSP and of Flink for the engine and for streams, of users for contract and SDK."""
RIDDLES = frozenset({"told", "given", "judged", "asked", "fed", "said", "telling", "giving", "saving", "asking"})
"""Names that say nothing of what a function does or a module is about."""


def texts(tree: ast.AST) -> Iterator[ast.Constant]:
    """The docstrings of a module, and the texts below its attributes."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.value


@pytest.mark.parametrize("folder", sorted({path.relative_to(ROOT / "airflow_pipelines").parts[0] for path in MODULES}))
def test_no_docstring_begins_with_a_question_word(folder: str) -> None:
    places = [
        f"{path.relative_to(ROOT)}:{text.lineno}: {text.value.partition(chr(10))[0]}"
        for path in MODULES
        if path.relative_to(ROOT / "airflow_pipelines").parts[0] == folder
        for text in texts(ast.parse(path.read_text()))
        if QUESTION.match(text.value)
    ]
    assert places == []


def test_no_function_has_a_name_that_is_a_riddle() -> None:
    places = [
        f"{path.relative_to(ROOT)}:{node.lineno}: {node.name}"
        for path in MODULES
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.strip("_") in RIDDLES
    ]
    assert places == []


def test_no_variable_is_named_by_the_act_of_finding_it() -> None:
    places = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in MODULES
        for node in ast.walk(ast.parse(path.read_text()))
        if (isinstance(node, ast.Name) and node.id == "found") or (isinstance(node, ast.arg) and node.arg == "found")
    ]
    assert places == []


def test_a_name_of_a_class_stands_for_one_class() -> None:
    """Names of classes for one module begin with an underscore and may be used again."""
    names = Counter(
        node.name
        for path in MODULES
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    assert {name for name, count in names.items() if count > 1} == SHARED
