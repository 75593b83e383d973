from __future__ import annotations

from typing import Any, cast

from airflow_pipelines.engine.evaluation import Evaluation, EvaluationAnew


class UnderWay:
    """An evaluation of which some operators are done."""

    def __init__(self) -> None:
        self.stats: dict[str, Any] = {}


def test_rows_count_as_read_when_the_operator_that_reads_them_is_done() -> None:
    under_way = UnderWay()
    anew = EvaluationAnew(cast(Evaluation, under_way), {"v": 100, "w": 50, "w$1": 0})
    assert anew.progress == (0, 150)
    under_way.stats["w"] = None
    under_way.stats["w$1"] = None
    assert anew.progress == (50, 150)
    under_way.stats["v"] = None
    assert anew.progress == (150, 150)
