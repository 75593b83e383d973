"""What jobs of a cluster read of each partition, and the order in which what they have read comes."""

from __future__ import annotations

from airflow_pipelines.connectors.transports.kafka.cluster_blocks import ClusterBlock
from airflow_pipelines.connectors.transports.kafka.cluster_ranges import chosen_ranges, parts_of
from airflow_pipelines.connectors.transports.kafka.records import RecordRows


def test_what_is_read_of_each_partition() -> None:
    assert chosen_ranges({0: 10, 1: 0, 2: 5}, {0: 1010, 1: 100, 2: 5}, 110) == {0: (10, 111), 1: (0, 11)}
    assert chosen_ranges({0: 10, 1: 0}, {0: 1010, 1: 1}, 5000) == {0: (10, 1010), 1: (0, 1)}
    assert chosen_ranges({0: 0, 1: 0}, {0: 10**9, 1: 1}, 1) == {0: (0, 1), 1: (0, 1)}
    assert chosen_ranges({0: 3}, {0: 3}, 10) == {}


def block(partition: int, first: int, last: int) -> ClusterBlock:
    return ClusterBlock(partition, first, last, 1, RecordRows(None, last - first, 0, (), 0))


def test_no_partition_comes_far_ahead_of_others_and_each_to_the_end_of_its_range() -> None:
    blocks = [block(0, 55, 97), block(1, 1000, 1009), block(0, 0, 49), block(1, 1010, 1018)]
    parts = parts_of(blocks, {0: (0, 100), 1: (1000, 1020), 2: (7, 9)})
    assert [(part.partition, part.next, part.rows.records) for part in parts] == [
        (0, 50, 49),
        (1, 1010, 9),
        (0, 100, 42),
        (1, 1020, 8),
        (2, 9, 0),
    ]
