"""The inputs that need no system: made-up rows, none at all, and those of tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.connectors.conformance.inputs import InputCase, InputConformance
from tests.connectors.relations import col, relation
from tests.connectors.sources import NUMBER_INPUT, SOURCES, Source
from tests.connectors.targets import registered

BIDS = relation(
    col("auction", "BIGINT"),
    col("bidder", "BIGINT"),
    col("price", "BIGINT"),
    name="t",
)


class TestDatagen(InputConformance):
    @pytest.fixture
    def case(self) -> InputCase:
        made = InputCase()
        made.transport = "datagen"
        fields = {"name": {"values": ["a", "b", "c"]}}
        made.config = {"seed": 1, "plan": [{"limit": 7, "fields": fields}, {"limit": 4, "fields": fields}]}
        made.rows = [{"id": row, "name": "abc"[row % 3]} for limit in (7, 4) for row in range(limit)]
        return made


class TestNexmark(InputConformance):
    @pytest.fixture
    def case(self) -> InputCase:
        made = InputCase()
        made.transport, made.schema = "nexmark", BIDS
        made.config = {"table": "bid", "options": {"events": 100, "seed": 7}}
        source = made.opened()
        # Whatever they are: the suite looks whether they are the same from wherever it begins.
        chunks = []
        while not chunks or not chunks[-1].end_of_input:
            chunk = source.read(1000, 1)
            assert chunk is not None
            chunks.append(chunk)
        source.close()
        made.rows = [
            {name: row[name] for name in BIDS.column_names}
            for chunk in chunks
            if chunk.changes is not None
            for row in chunk.changes.rows.to_pylist()
        ]
        assert len(made.rows) == 92, "46 of 50 events are bids"
        return made


class TestEmptyInput(InputConformance):
    @pytest.fixture
    def case(self) -> InputCase:
        made = InputCase()
        made.transport = "empty_input"
        return made


class _InProcess(InputCase):
    transport = "number_test_input"
    schema = relation(col("x", "INTEGER"), name="t")
    can_be_away = True

    def take_away(self) -> None:
        SOURCES["conformance"].is_there = False

    def bring_back(self) -> None:
        SOURCES["conformance"].is_there = True


class TestInputOfThisProcess(InputConformance):
    """So the suite itself is tried with a connector that is known to be right."""

    @pytest.fixture
    def case(self) -> Iterator[InputCase]:
        made = _InProcess()
        made.config = {"source": "conformance"}
        made.rows = [{"x": number} for number in range(5)]
        SOURCES["conformance"] = Source(*range(5))
        with registered(NUMBER_INPUT):
            yield made
