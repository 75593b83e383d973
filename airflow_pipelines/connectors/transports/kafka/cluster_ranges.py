"""The ranges of offsets that jobs of a cluster read of each partition, and the order of the results."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from airflow_pipelines.connectors.transports.kafka.cluster_blocks import ClusterBlock
from airflow_pipelines.connectors.transports.kafka.records import RecordRows

Range: TypeAlias = tuple[int, int]
"""The offset at which reading begins, and the one at which it ends."""


@dataclass(frozen=True, slots=True)
class ResultPart:
    """A part of the result of a job.

    :param partition: the number of the partition
    :param next: the offset of the record that comes next
    :param rows: the rows of the records before it
    """

    partition: int
    next: int
    rows: RecordRows


def chosen_ranges(places: Mapping[int, int], ends: Mapping[int, int], most: int) -> dict[int, Range]:
    """Return the range to read of each partition that has any records: the same share of each.

    :param places: the offset of the next record, by partition
    :param ends: the end offset, by partition
    :param most: the maximum number of records in total, apart from one more of each partition
    """
    left = {partition: ends[partition] - place for partition, place in places.items() if ends[partition] > place}
    share = min(1.0, most / max(1, sum(left.values())))
    return {
        partition: (places[partition], places[partition] + min(records, int(records * share) + 1))
        for partition, records in left.items()
    }


def parts_of(blocks: Iterable[ClusterBlock], ranges: Mapping[int, Range]) -> list[ResultPart]:
    """Return the result of a job as parts, in an order in which no partition is far ahead of others.

    The last part of each partition goes to the end of its range: transaction markers are offsets without records.

    :param blocks: the blocks in any order
    :param ranges: the ranges that were to be read
    """
    by_partition: dict[int, list[ClusterBlock]] = {partition: [] for partition in ranges}
    for block in sorted(blocks, key=lambda block: block.first):
        by_partition[block.partition].append(block)
    parts = [part for partition, (_, end) in ranges.items() for part in _parts(partition, by_partition[partition], end)]
    return sorted(parts, key=lambda part: (_compute_progress(part, ranges[part.partition]), part.partition))


def _compute_progress(part: ResultPart, chosen: Range) -> float:
    """Return the share of its range that ends with a part."""
    start, end = chosen
    return (part.next - start) / (end - start)


def _parts(partition: int, blocks: Sequence[ClusterBlock], end: int) -> list[ResultPart]:
    if not blocks:
        return [ResultPart(partition, end, RecordRows(None, 0, 0, (), 0))]
    nexts = [*(block.last + 1 for block in blocks[:-1]), end]
    return [ResultPart(partition, following, block.rows) for block, following in zip(blocks, nexts, strict=True)]
