"""The offsets at which an input begins to read the partitions of its topic."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from airflow_pipelines.connectors.base import ConnectorFailure
from airflow_pipelines.connectors.transports.kafka.options import KafkaInputOptions, StartOffsets, StartTimestamp, TopicEnd


class Topic(Protocol):
    """A topic that answers questions about its offsets."""

    def ends(self, partition: int) -> tuple[int, int]:
        """Return the offset of the oldest record of a partition, and that of the next one that somebody writes."""

    def at_time(self, partitions: Sequence[int], timestamp: int) -> Mapping[int, int]:
        """Return, by partition, the offset of the first record that is not older; that of the next one where there is none."""


class Expired(ConnectorFailure):
    """The failure of an input whose next record has been removed from the topic."""


def chosen_partitions(options: KafkaInputOptions, existing: Iterable[int]) -> tuple[int, ...]:
    """Return the partitions that are read.

    :param options: the options of the input
    :param existing: the numbers of the existing partitions
    :raises ConnectorFailure: when the options name one that does not exist
    """
    numbers = tuple(sorted(existing))
    if options.partitions is None:
        return numbers
    missing = sorted(set(options.partitions) - set(numbers))
    if missing:
        listed = ", ".join(map(str, missing))
        raise ConnectorFailure(
            f"kafka_input {options.topic}: the topic has {len(numbers)} partitions, from 0 on, and option 'partitions' names "
            f"{listed}. Correct the option, or give the topic more partitions"
        )
    return options.partitions


def first_offsets(options: KafkaInputOptions, partitions: Sequence[int], topic: Topic) -> dict[int, int]:
    """Return the offsets at which a first start begins, by partition.

    :param options: the options of the input
    :param partitions: the partitions that are read
    :param topic: the topic
    :raises ConnectorFailure: when there is no such place
    """
    match options.start_from:
        case TopicEnd.EARLIEST:
            return {partition: topic.ends(partition)[0] for partition in partitions}
        case TopicEnd.LATEST:
            return {partition: topic.ends(partition)[1] for partition in partitions}
        case StartTimestamp(timestamp=timestamp):
            return dict(topic.at_time(partitions, timestamp))
        case StartOffsets(offsets=offsets):
            if len(offsets) != len(partitions):
                raise ConnectorFailure(
                    f"kafka_input {options.topic}: 'start_from' has {len(offsets)} offsets for {len(partitions)} partitions. Give "
                    "one for each, or name those that are to be read in 'partitions'"
                )
            return next_offsets(options, dict(zip(partitions, offsets, strict=True)), partitions, topic)


def next_offsets(options: KafkaInputOptions, known: Mapping[int, int], partitions: Sequence[int], topic: Topic) -> dict[int, int]:
    """Return the offsets at which to resume, by partition. A new partition is read from its beginning.

    :param options: the options of the input
    :param known: the offsets of the records that come next
    :param partitions: the partitions that are read
    :param topic: the topic
    :raises Expired: when such a record has been removed, and the options do not say to go on without it
    :raises ConnectorFailure: when a partition ends before its place
    """
    return {partition: _next_offset(options, known.get(partition), partition, topic) for partition in partitions}


def _next_offset(options: KafkaInputOptions, known: int | None, partition: int, topic: Topic) -> int:
    oldest, end = topic.ends(partition)
    if known is None:
        return oldest
    if known > end:
        raise ConnectorFailure(
            f"kafka_input {options.topic}: partition {partition} ends at offset {end}, and offset {known} comes next: the topic "
            "was deleted and made anew, or has lost records. Give the connector another name to read it from the start"
        )
    if known < oldest and not options.resume_earliest_if_data_expires:
        raise make_expired_failure(options.topic, partition, known, oldest)
    return max(known, oldest)


def made_anew(topic: str) -> ConnectorFailure:
    """Return the failure of an input whose topic is not the one that was read before.

    :param topic: the name of the topic
    """
    return ConnectorFailure(
        f"kafka_input {topic}: the topic was deleted and made anew, so that places in the old one mean nothing in it. Give the "
        "connector another name to read it from the start"
    )


def make_expired_failure(topic: str, partition: int, wanted: int, oldest: int | None) -> Expired:
    """Return the failure of an input whose next record has been removed.

    :param topic: the name of the topic
    :param partition: the number of the partition
    :param wanted: the offset of the record
    :param oldest: the offset of the oldest record that is still there, if it is known
    """
    gone = (
        f"records {wanted} to {oldest - 1} of partition {partition} have"
        if oldest
        else f"record {wanted} of partition {partition} has"
    )
    return Expired(
        f"kafka_input {topic}: {gone} been removed from the topic before the pipeline read them. Set option "
        "'resume_earliest_if_data_expires' to go on with the oldest record that is there, and keep records for longer "
        "('retention.ms' of the topic)"
    )
