"""An analyzer that is a table: what Spark answers to the planner's questions, written down, so that a planner test needs no JVM.

Beside each module of such tests is a file with the relations that the module declares and the questions that its tests ask, each
with Spark's answer. ``make answers`` asks Spark anew and writes the files; ``tests/compiler/test_answers.py`` finds those that are
out of date.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from airflow_pipelines.sql.plan.analyzer import AnalysisFailed, Analyzer
from airflow_pipelines.sql.plan.ir.node import ColumnTypes

Relations = Mapping[str, ColumnTypes]


@dataclass(frozen=True, slots=True)
class Question:
    """A call of an analyzer: the method, its texts, and the stages of the plan so far that the texts name, with their columns."""

    method: str
    texts: tuple[str, ...]
    stages: tuple[tuple[str, ColumnTypes], ...]

    @classmethod
    def of(cls, method: str, texts: tuple[str, ...], stages: Relations) -> Question:
        """A question while the relations of ``stages`` are declared."""
        named = {name: columns for name, columns in stages.items() if any(_names(text, name) for text in texts)}
        return cls(method, texts, tuple(sorted(named.items())))


class TableAnalyzer:
    """Answers what is in the table, and nothing else."""

    def __init__(self, answers: Mapping[Question, Any]) -> None:
        self._answers = answers
        self._stages: dict[str, ColumnTypes] = {}

    def declare(self, relations: Relations) -> None:
        """Let queries read these relations from now on."""
        self._stages.update(relations)

    def columns(self, query: str) -> ColumnTypes:
        """Names and types of a query's columns."""
        answer = self._answer("columns", query)
        if isinstance(answer, dict):
            raise AnalysisFailed(answer["refused"])
        return _columns(answer)

    def same_plan(self, one: str, other: str) -> bool:
        """Whether Spark reads two queries as the same."""
        return bool(self._answer("same_plan", one, other))

    def planning_error(self, query: str) -> str | None:
        """Why Spark cannot plan a query."""
        answer: str | None = self._answer("planning_error", query)
        return answer

    def _answer(self, method: str, *texts: str) -> Any:
        question = Question.of(method, texts, self._stages)
        if question not in self._answers:
            raise AssertionError(f"Spark was not asked this yet, `make answers` asks it: {question}")
        return self._answers[question]


class RecordingAnalyzer:
    """Passes questions on to Spark, and notes them with the answers."""

    def __init__(self, spark: Analyzer, stages: Relations) -> None:
        """Begin with some stages declared."""
        self.answers: dict[Question, Any] = {}
        self._spark = spark
        self._stages: dict[str, ColumnTypes] = {}
        self.declare(stages)

    def declare(self, relations: Relations) -> None:
        """Let queries read these relations from now on."""
        self._spark.declare(relations)
        self._stages.update(relations)

    def columns(self, query: str) -> ColumnTypes:
        """Names and types of a query's columns."""
        try:
            columns = self._spark.columns(query)
        except AnalysisFailed as error:
            self._note({"refused": str(error)}, "columns", query)
            raise
        self._note([list(column) for column in columns], "columns", query)
        return columns

    def same_plan(self, one: str, other: str) -> bool:
        """Whether Spark reads two queries as the same."""
        answer = self._spark.same_plan(one, other)
        self._note(answer, "same_plan", one, other)
        return answer

    def planning_error(self, query: str) -> str | None:
        """Why Spark cannot plan a query."""
        answer = self._spark.planning_error(query)
        self._note(answer, "planning_error", query)
        return answer

    def _note(self, answer: Any, method: str, *texts: str) -> None:
        self.answers[Question.of(method, texts, self._stages)] = answer


@dataclass(frozen=True, slots=True)
class Answers:
    """The answers that the tests of one module need."""

    relations: Relations
    answers: Mapping[Question, Any]

    @staticmethod
    def file_of(module: Path) -> Path:
        """Where the answers for a test module are."""
        return module.with_suffix(".answers.json")

    @classmethod
    def read(cls, file: Path) -> Answers:
        """The answers in a file."""
        stored = json.loads(file.read_text())
        answers = {
            Question(method, tuple(texts), tuple((name, _columns(columns)) for name, columns in stages)): answer
            for method, texts, stages, answer in stored["answers"]
        }
        return cls({name: _columns(columns) for name, columns in stored["relations"].items()}, answers)

    def write(self, file: Path) -> None:
        """Write the file, a question a line."""
        questions = sorted(self.answers, key=lambda question: (question.texts, question.method, question.stages))
        lines = [json.dumps([one.method, one.texts, one.stages, self.answers[one]]) for one in questions]
        file.write_text(f'{{"relations": {json.dumps(self.relations)},\n"answers": [\n{_joined(lines)}\n]}}\n')

    def asked_anew(self, spark: Analyzer) -> dict[Question, Any]:
        """The same questions with what Spark answers now."""
        spark.declare(self.relations)
        found: dict[Question, Any] = {}
        for question in self.answers:
            anew = RecordingAnalyzer(spark, dict(question.stages))
            with suppress(AnalysisFailed):
                getattr(anew, question.method)(*question.texts)
            found |= anew.answers
        return found


def _names(text: str, relation: str) -> bool:
    """Whether a query may read a relation. Nothing is lost when its name is only that of a column."""
    return re.search(rf"(?<![\w$]){re.escape(relation)}(?![\w$])", text) is not None


def _columns(stored: Iterable[Iterable[str]]) -> ColumnTypes:
    return tuple((name, kind) for name, kind in stored)


def _joined(lines: Iterable[str]) -> str:
    return ",\n".join(lines)
