"""What layouts have of a node: first names, nothing that follows from the rest, no words for people."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import ClassVar

import pytest

from airflow_pipelines.sql.plan.ir.description import DERIVED, REMARK, describe_node, formerly
from airflow_pipelines.sql.plan.ir.full import CHOSEN, Full


class Kind(Enum):
    ONE = "one"


@dataclass(frozen=True)
class Renamed:
    layout_name: ClassVar[str] = "First"

    relation: str
    parts: tuple[Kind, ...] = field(default=(), metadata=formerly("pieces"))
    why: str = field(default="", metadata=REMARK)
    size: int = field(default=0, compare=False, metadata=DERIVED)


def test_a_description_has_first_names_and_nothing_that_follows() -> None:
    expected = ["First", {"relation": "t", "pieces": ["one"], "why": ""}]
    assert describe_node(Renamed("t", (Kind.ONE,), "because", 3)) == expected
    assert Renamed("t", size=3) == Renamed("t"), "derived fields do not tell nodes apart"


def test_the_reason_of_a_full_node_is_blank() -> None:
    assert describe_node(Full("SELECT 1", ("t",), CHOSEN)) == [
        "Full",
        {"query": "SELECT 1", "reads": ["t"], "reason": "", "needs": []},
    ]


def test_other_values_are_refused() -> None:
    with pytest.raises(TypeError, match="list"):
        describe_node(Renamed("t", parts=[Kind.ONE]))  # type: ignore[arg-type]
