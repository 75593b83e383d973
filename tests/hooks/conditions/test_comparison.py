from __future__ import annotations

from typing import Any

import pytest

from airflow_pipelines.hooks.conditions import Comparison


@pytest.mark.parametrize(
    ("found", "operator", "value", "holds"),
    [
        (3, ">=", 3, True),
        (3, ">", 3, False),
        ("b", "<", "c", True),
        (True, "==", True, True),
        (2.5, ">", "2", True),
        (10, ">", "9", True),
        ("10", ">", "9", False),
        (None, "!=", 3, False),
    ],
)
def test_values_are_compared_as_what_they_are(found: Any, operator: str, value: Any, holds: bool) -> None:
    assert Comparison(operator, value).holds(found) is holds


@pytest.mark.parametrize(("found", "value"), [("3", 3), (3, "many"), (True, "1")])
def test_a_text_and_a_number_do_not_compare(found: Any, value: Any) -> None:
    with pytest.raises(TypeError, match="does not compare with"):
        Comparison("==", value).holds(found)


def test_only_signs_that_are_known_and_plain_values_are_taken() -> None:
    with pytest.raises(ValueError, match="known: < <= == != >= >"):
        Comparison("in", 3)
    several: Any = [3]
    with pytest.raises(ValueError, match="no number, text or truth value"):
        Comparison("==", several)
