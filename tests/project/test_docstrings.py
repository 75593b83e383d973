"""The worst habits of docstrings and names do not come back; ruff holds the rest (``D401``)."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MODULES = sorted((ROOT / "airflow_pipelines").rglob("*.py"))
QUESTION = re.compile(r"(What|Whether|How|Where|That|So|Why|When|Which|Who)\b")
RIDDLES = frozenset({"told", "given", "judged", "asked", "fed", "said", "telling", "giving", "saving", "asking"})
"""Names that say nothing of what a function does or a module is about."""


def texts(tree: ast.AST) -> Iterator[ast.Constant]:
    """The docstrings of a module, and the texts below its attributes."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.value


@pytest.mark.parametrize("folder", sorted({path.relative_to(ROOT / "airflow_pipelines").parts[0] for path in MODULES}))
def test_no_docstring_begins_with_a_question_word(folder: str) -> None:
    found = [
        f"{path.relative_to(ROOT)}:{text.lineno}: {text.value.partition(chr(10))[0]}"
        for path in MODULES
        if path.relative_to(ROOT / "airflow_pipelines").parts[0] == folder
        for text in texts(ast.parse(path.read_text()))
        if QUESTION.match(text.value)
    ]
    assert found == []


def test_no_function_has_a_name_that_is_a_riddle() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{node.lineno}: {node.name}"
        for path in MODULES
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.strip("_") in RIDDLES
    ]
    assert found == []
