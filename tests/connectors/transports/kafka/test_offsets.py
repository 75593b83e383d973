"""Where an input begins to read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from airflow_pipelines.connectors.base import ConnectorFailure
from airflow_pipelines.connectors.transports.kafka.offsets import Expired, chosen_partitions, first_offsets, next_offsets
from airflow_pipelines.connectors.transports.kafka.options import KAFKA_INPUT_OPTIONS, KafkaInputOptions


class Topic:
    """Partition 0 has the records 5 to 9, the others none."""

    def ends(self, partition: int) -> tuple[int, int]:
        return (5, 10) if partition == 0 else (0, 0)

    def at_time(self, partitions: Sequence[int], timestamp: int) -> Mapping[int, int]:
        return {partition: min(max(timestamp, self.ends(partition)[0]), self.ends(partition)[1]) for partition in partitions}


def options(**given: Any) -> KafkaInputOptions:
    return KAFKA_INPUT_OPTIONS.model_validate({"topic": "t", "bootstrap.servers": "b", **given})


@pytest.mark.parametrize(
    ("start", "places"),
    [
        ("earliest", {0: 5, 1: 0}),
        ("latest", {0: 10, 1: 0}),
        ({"timestamp": 7}, {0: 7, 1: 0}),
        ({"offsets": [6, 0]}, {0: 6, 1: 0}),
        ({"offsets": [10, 0]}, {0: 10, 1: 0}),
    ],
)
def test_first_starts(start: Any, places: dict[int, int]) -> None:
    assert first_offsets(options(start_from=start), (0, 1), Topic()) == places


@pytest.mark.parametrize(
    ("start", "says"),
    [
        ({"offsets": [6]}, "1 offsets for 2 partitions"),
        ({"offsets": [11, 0]}, "partition 0 ends at offset 10, and offset 11 comes next"),
        ({"offsets": [4, 0]}, "records 4 to 4 of partition 0 have been removed"),
    ],
)
def test_offsets_that_are_not_there(start: Any, says: str) -> None:
    with pytest.raises(ConnectorFailure, match=says):
        first_offsets(options(start_from=start), (0, 1), Topic())


def test_going_on() -> None:
    assert next_offsets(options(), {0: 7}, (0, 1), Topic()) == {0: 7, 1: 0}
    assert next_offsets(options(), {0: 5, 1: 0}, (0, 1), Topic()) == {0: 5, 1: 0}
    with pytest.raises(Expired, match=r"records 3 to 4 .* 'resume_earliest_if_data_expires'"):
        next_offsets(options(), {0: 3}, (0, 1), Topic())
    assert next_offsets(options(resume_earliest_if_data_expires=True), {0: 3}, (0, 1), Topic()) == {0: 5, 1: 0}
    with pytest.raises(ConnectorFailure, match="deleted and made anew"):
        next_offsets(options(resume_earliest_if_data_expires=True), {1: 1}, (0, 1), Topic())


def test_partitions() -> None:
    assert chosen_partitions(options(), (1, 0)) == (0, 1)
    assert chosen_partitions(options(partitions=[1, 0]), (0, 1, 2)) == (1, 0)
    with pytest.raises(ConnectorFailure, match="2 partitions, from 0 on, and option 'partitions' names 2, 5"):
        chosen_partitions(options(partitions=[5, 1, 2]), (0, 1))
