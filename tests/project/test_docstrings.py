"""The worst habits of docstrings and names do not come back; ruff holds the rest (``D401``)."""

from __future__ import annotations

import ast
import re
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
QUESTION = re.compile(r"(What|Whether|How|Where|That|So|Why|When|Which|Who)\b")
SHARED = {"Batch", "Node", "Operator", "Resources", "RuntimeConfig", "Sink", "Snapshot", "Source", "Step", "Storage"}
"""The names of more than one class: words of DBSP and of Flink for the engine and for streams, of users for contract and SDK."""
RIDDLES = frozenset({"told", "given", "judged", "asked", "fed", "said", "telling", "giving", "saving", "asking"})
"""Names that say nothing of what a function does or a module is about."""


@dataclass
class Habits:
    """The places of bad habits in all modules, and how often each name of a class is given."""

    questions: list[str] = field(default_factory=list)
    riddles: list[str] = field(default_factory=list)
    finds: list[str] = field(default_factory=list)
    classes: Counter[str] = field(default_factory=Counter)


@pytest.fixture(scope="module")
def habits() -> Habits:
    """The findings of one look at each module; to parse them all takes seconds."""
    habits = Habits()
    for path in sorted((ROOT / "airflow_pipelines").rglob("*.py")):
        tree = ast.parse(path.read_text())
        habits.classes.update(node.name for node in tree.body if isinstance(node, ast.ClassDef) and node.name[0] != "_")
        for node in ast.walk(tree):
            place = f"{path.relative_to(ROOT)}:{getattr(node, 'lineno', 1)}"
            match node:
                # The docstrings, and the texts below attributes.
                case ast.Expr(value=ast.Constant(value=str() as text)) if QUESTION.match(text):
                    habits.questions.append(f"{place}: {text.partition(chr(10))[0]}")
                case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) if name.strip("_") in RIDDLES:
                    habits.riddles.append(f"{place}: {name}")
                case ast.Name(id="found") | ast.arg(arg="found"):
                    habits.finds.append(place)
    return habits


def test_no_docstring_begins_with_a_question_word(habits: Habits) -> None:
    assert habits.questions == []


def test_no_function_has_a_name_that_is_a_riddle(habits: Habits) -> None:
    assert habits.riddles == []


def test_no_variable_is_named_by_the_act_of_finding_it(habits: Habits) -> None:
    assert habits.finds == []


def test_a_name_of_a_class_stands_for_one_class(habits: Habits) -> None:
    """Names of classes for one module begin with an underscore and may be used again."""
    assert {name for name, count in habits.classes.items() if count > 1} == SHARED
