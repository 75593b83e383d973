"""Outputs to targets of this process: so the suite itself is tried with connectors that are known to be right."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest

from tests.connectors.conformance.outputs import OutputCase, OutputConformance
from tests.connectors.targets import COMMITTING_OUTPUT, TARGETS, Target, registered


class _Kept(OutputCase):
    can_be_away = True
    takes_texts_that_are_none = True

    def __init__(self, transport: str) -> None:
        self.transport, self.config = transport, {"target": "conformance"}
        self.target = TARGETS["conformance"] = Target()

    def contents(self) -> Counter[tuple[int, str]]:
        left: Counter[tuple[int, str]] = Counter()
        for rows, weights in zip(self.target.tuples, self.target.weights, strict=True):
            for row, weight in zip(rows, weights, strict=True):
                left[row[0], row[1]] += weight
        return +left

    def take_away(self) -> None:
        self.target.is_there = False

    def bring_back(self) -> None:
        self.target.is_there = True


class TestOutputThatKnowsItsSteps(OutputConformance):
    @pytest.fixture
    def case(self) -> Iterator[OutputCase]:
        with registered(COMMITTING_OUTPUT):
            yield _Kept("committing_test_output")
