"""The condition on the result of a query."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from airflow_pipelines.contract.enums import PipelineStatus
from airflow_pipelines.hooks.conditions.comparison import Comparable, Comparison
from airflow_pipelines.hooks.conditions.condition import PollOutcome, RuntimeCondition, Verdict, pending
from airflow_pipelines.hooks.conditions.observation import Observation, Request

_MARK: Final = "__row_found"
"""The name of a column that every row of the answer has; an answer without it holds the error of the query."""

_ANSWERING: Final = frozenset({PipelineStatus.RUNNING, PipelineStatus.PAUSED})


@dataclass(frozen=True)
class ViewCondition(RuntimeCondition):
    """The condition that a query over materialized tables and views finds a row; with an operator, that its first column compares.

    Only the first row of the query is compared, so most queries are aggregates: ``select count(*) from v``.

    :param query: a SELECT
    :param operator: the comparison's sign, None if any row is enough
    :param value: the value to compare the first column with
    """

    kind = "view"
    query: str
    operator: str | None = None
    value: Comparable | None = None

    def __post_init__(self) -> None:
        if not self.query.strip().rstrip(";"):
            raise ValueError("query is empty")
        if (self.operator is None) is not (self.value is None):
            raise ValueError("operator and value belong together: give both or neither")
        self._comparison()

    @property
    def goal(self) -> str:
        """The goal, with the query and the comparison."""
        comparison = self._comparison()
        text = " ".join(self.query.split())
        shown = text if len(text) <= 200 else f"{text[:200]}..."
        return f"a row of ({shown})" if comparison is None else f"({shown}) {comparison}"

    def _comparison(self) -> Comparison | None:
        if self.operator is None or self.value is None:
            return None
        return Comparison(self.operator, self.value)

    def request(self) -> Request:
        """Request the first row. The query is a subquery, so it can only read, whatever its text is."""
        text = self.query.strip().rstrip(";")
        # The line break ends a comment at the end of the query.
        return Request("/query", {"sql": f"select 1 as {_MARK}, awaited.* from (\n{text}\n) as awaited limit 1", "format": "json"})

    def judge(self, seen: Observation, memory: Mapping[str, Any] | None) -> Verdict:
        """Judge like every condition on a running pipeline; an empty answer means that the query finds no row."""
        verdict = super().judge(seen, memory)
        if verdict.outcome is PollOutcome.PENDING and seen.answer is None and seen.refusal is None and seen.status in _ANSWERING:
            return pending(seen, "the query finds no row")
        return verdict

    def _judge_answer(self, seen: Observation, answer: Mapping[str, Any], memory: Mapping[str, Any] | None) -> Verdict:
        if _MARK not in answer:
            message = f"the query fails: {answer.get('error', answer)}"
            return Verdict(PollOutcome.FAILED, message, {"status": seen.status.name})
        row = {name: value for name, value in answer.items() if name != _MARK}
        comparison = self._comparison()
        first = next(iter(row.values()), None)
        try:
            holds = comparison is None or comparison.holds(first)
        except TypeError as error:
            return Verdict(PollOutcome.FAILED, f"the query's first column: {error}", {"status": seen.status.name})
        if holds:
            return Verdict(PollOutcome.REACHED, f"the query finds {first!r}", {"row": row})
        return pending(seen, f"the query finds {first!r}")
