"""What jobs of a cluster read of each partition, and the order in which what they have read comes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from airflow_pipelines.connectors.transports.kafka.cluster_blocks import ClusterBlock
from airflow_pipelines.connectors.transports.kafka.records import Rows

Range: TypeAlias = tuple[int, int]
"""An offset, and the one at which reading ends."""


@dataclass(frozen=True, slots=True)
class Part:
    """A part of what a job read.

    :param partition: the number of the partition
    :param next: the offset of the record that comes next
    :param rows: what the records before it say
    """

    partition: int
    next: int
    rows: Rows


def chosen_ranges(places: Mapping[int, int], ends: Mapping[int, int], most: int) -> dict[int, Range]:
    """What to read of each partition that has anything: of each the same share.

    :param places: by partition the offset of the record that comes next
    :param ends: by partition the offset at which it ends
    :param most: so many records of all together, and one more of each partition
    """
    left = {partition: ends[partition] - place for partition, place in places.items() if ends[partition] > place}
    share = min(1.0, most / max(1, sum(left.values())))
    return {
        partition: (places[partition], places[partition] + min(records, int(records * share) + 1))
        for partition, records in left.items()
    }


def parts_of(blocks: Iterable[ClusterBlock], ranges: Mapping[int, Range]) -> list[Part]:
    """What a job read, in an order in which no partition is far ahead of others.

    The last part of each partition goes to the end of its range: marks of transactions are offsets without records.

    :param blocks: in any order
    :param ranges: what was to be read
    """
    by_partition: dict[int, list[ClusterBlock]] = {partition: [] for partition in ranges}
    for block in sorted(blocks, key=lambda block: block.first):
        by_partition[block.partition].append(block)
    parts = [part for partition, (_, end) in ranges.items() for part in _parts(partition, by_partition[partition], end)]
    return sorted(parts, key=lambda part: (_done(part, ranges[part.partition]), part.partition))


def _done(part: Part, chosen: Range) -> float:
    """Which share of its range ends with a part."""
    start, end = chosen
    return (part.next - start) / (end - start)


def _parts(partition: int, blocks: Sequence[ClusterBlock], end: int) -> list[Part]:
    if not blocks:
        return [Part(partition, end, Rows(None, 0, 0, (), 0))]
    nexts = [*(block.last + 1 for block in blocks[:-1]), end]
    return [Part(partition, following, block.rows) for block, following in zip(blocks, nexts, strict=True)]
