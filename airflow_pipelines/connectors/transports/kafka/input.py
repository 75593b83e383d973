"""An input that reads a topic of Kafka."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from airflow_pipelines.connectors.base import CountedError, InputChunk, Lag
from airflow_pipelines.connectors.transports.kafka.cluster import ClusterReader
from airflow_pipelines.connectors.transports.kafka.failures import connector_problems, failures_of_format
from airflow_pipelines.connectors.transports.kafka.in_time_order import InTimeOrder
from airflow_pipelines.connectors.transports.kafka.metadata import RecordMetadata
from airflow_pipelines.connectors.transports.kafka.offsets import (
    chosen_partitions,
    first_offsets,
    made_anew,
    make_expired_failure,
    next_offsets,
)
from airflow_pipelines.connectors.transports.kafka.options import KafkaInputOptions
from airflow_pipelines.connectors.transports.kafka.read_ahead import ReadAhead, RecordBlock
from airflow_pipelines.connectors.transports.kafka.records import RecordReader, RecordRows
from airflow_pipelines.engine.storage.connector_state import Position
from airflow_pipelines.rows.formats.messages import MessageParser
from airflow_pipelines.systems.kafka.clients import close_client, new_reader
from airflow_pipelines.systems.kafka.problems import NO_TOPIC
from airflow_pipelines.systems.kafka.records import next_offsets as offsets_after
from airflow_pipelines.systems.kafka.topic_ids import TopicIds
from airflow_pipelines.systems.kafka.topics import LOOK_S, TopicOfBroker, find_topics

logger = logging.getLogger(__name__)

_PARTITIONS_S: Final = 10.0
"""The interval, in seconds, at which new partitions are looked for."""
_LAG_S: Final = 0.5
"""The interval, in seconds, at which unread records are counted."""
_CLOSE_S: Final = 10.0
"""The maximum time, in seconds, to wait for the client to close."""
_CLOSE_AWAY_S: Final = 1.0
"""The same while its brokers are away: what the client still waits for changes nothing here."""
_LINGER_S: Final = 0.02
"""The time, in seconds, to wait for more records after the first one: large blocks are read faster."""
_BLOCK_RECORDS: Final = 20_000
_LARGE_RECORDS: Final = 5_000
"""The number of records from which the next ones are fetched while these are parsed."""
_NOT_ENOUGH_S: Final = 10.0
"""The time, in seconds, until a cluster that had too little to read is asked again."""


class KafkaInput:
    """An input over the partitions of a topic. A position is the offset of the next record, by partition."""

    def __init__(self, options: KafkaInputOptions, parser: MessageParser, name: str, cluster: ClusterReader | None = None) -> None:
        """Make an input that is not open yet.

        :param options: the options that say what to read
        :param parser: the parser of the records
        :param name: the name of the connector, for messages
        :param cluster: the reader of large backlogs; None where there is none
        """
        self._options = options
        self._cluster = cluster
        self._asks_cluster_at = 0.0
        self._where = f"kafka_input {options.topic}"
        self._problems = connector_problems(self._where, options.bootstrap_servers)
        self._name = name
        self._reader = RecordReader(parser, options.header_filter, RecordMetadata(options))
        self._ahead = ReadAhead()
        self._in_order: InTimeOrder | None = None
        self._paused: frozenset[int] = frozenset()
        self._consumer: Consumer | None = None
        self._is_assigned = False
        """True if the consumer fetches records, which it does not while a cluster reads."""
        self._next: dict[int, int] = {}
        self._read_to: dict[int, int] = {}
        self._ends: dict[int, int] = {}
        """The last known end of each partition: the offset of the next record that somebody writes."""
        self._said_where = False
        self._looked_for_partitions = 0.0
        self._group = options.properties().get("group.id")
        self._ids = TopicIds(options.properties(), made_anew)
        self._lag: Lag | None = None
        self._measured_lag = 0.0
        self._closed = threading.Event()
        self._lock = threading.Lock()
        """The lock for use of the consumer, whose calls wait for each other, but not in turn."""
        self._wanted: list[TopicPartition] = []
        """The offsets that the group should have."""
        self._told = self._wanted
        """The offsets that were last committed to the group."""

    def open(self, position: Position | None) -> None:
        """Find the partitions, and the offset at which each begins.

        :raises ConnectorFailure: when a broker refuses, records have expired, or an option does not fit the topic
        :raises TransientConnectorFailure: when no broker answers, or there is no such topic yet
        """
        given = {"group.id": f"airflow-pipelines-{self._name}", **self._options.properties()}
        consumer = self._consumer = new_reader(given, self._problems, self._log_commit_failure)
        partitions = chosen_partitions(self._options, self._partitions(consumer))
        try:
            self._ids.begin({self._options.topic: None if position is None else position.get("topic_id")})
        except KafkaException as error:
            raise self._problems.failure(error.args[0]) from error
        topic = TopicOfBroker(consumer, self._options.topic, self._problems)
        if position is None:
            places = first_offsets(self._options, partitions, topic)
        else:
            known = {int(partition): offset for partition, offset in position["offsets"].items()}
            # Partitions that are no longer chosen keep their place.
            places = {**known, **next_offsets(self._options, known, partitions, topic)}
            self._report_skipped(known, places)
        self._next, self._read_to = places, {partition: places[partition] for partition in partitions}
        if self._options.synchronize_partitions:
            self._in_order = InTimeOrder(partitions)
        self._assign(consumer)
        self._looked_for_partitions = time.monotonic()

    def read(self, max_records: int, timeout_s: float) -> InputChunk | None:
        """Return the next records, or None if nothing came within ``timeout_s``.

        :raises ConnectorFailure: when a broker refuses, or records have expired
        :raises TransientConnectorFailure: when no broker can be reached
        """
        if not self._said_where:
            # "latest" would be another offset after a restart, so the first checkpoint has the offsets.
            self._said_where = True
            return InputChunk(None, 0, 0, self._position())
        return self._ahead.read(lambda patience_s: self._take_block(max_records, patience_s), timeout_s)

    def commit(self, position: Position) -> None:
        """Commit the position of the pipeline to the group, if the connector has one."""
        if self._group is None:
            return
        offsets = position["offsets"].items()
        self._wanted = [TopicPartition(self._options.topic, int(partition), offset) for partition, offset in offsets]
        # If a read holds the lock, it commits: a concurrent call might wait until that read returns.
        if self._lock.acquire(blocking=False):
            try:
                self._commit_noted()
            finally:
                self._lock.release()

    def lag(self) -> Lag | None:
        """Return the number of unread records that the topic had when it last answered."""
        return self._lag

    def close(self) -> None:
        """Close the consumer; a read in another thread then returns."""
        self._closed.set()
        self._ahead.close()
        if self._cluster is not None:
            self._cluster.cancel()
        with self._lock:
            is_away = self._problems.are_serious
            if not is_away:
                self._commit_noted()
            consumer, self._consumer = self._consumer, None
        if consumer is not None:
            close_client(consumer.close, self._problems, self._where, _CLOSE_AWAY_S if is_away else _CLOSE_S)

    def _commit_noted(self) -> None:
        """Commit the wanted offsets to the group; the answer comes with a later read."""
        wanted = self._wanted
        if not wanted or wanted is self._told or self._consumer is None:
            return
        self._told = wanted
        try:
            self._consumer.commit(offsets=wanted, asynchronous=True)
        except KafkaException as error:
            self._log_commit_failure(error.args[0], wanted)

    def _take_block(self, max_records: int, timeout_s: float) -> RecordBlock | None:
        with self._lock:
            if self._consumer is None or self._closed.is_set():
                return None
            self._commit_noted()
            if (part := self._part_of_cluster(self._consumer, max_records)) is not None:
                return part
            if not self._is_assigned:
                self._assign(self._consumer)
            records = self._records(self._consumer, min(max_records, _BLOCK_RECORDS), timeout_s)
            has_ended = not records and self._has_ended(self._consumer)
            self._advance(records)
            if self._cluster is not None:
                self._cluster.saw(len(records), sum(len(record.value() or b"") for record in records))
            self._measure_lag(self._consumer)
            position = self._position()
        if not records and not has_ended:
            return None
        return RecordBlock(lambda: self._chunk(records, position, has_ended), len(records) >= _LARGE_RECORDS)

    def _assign(self, consumer: Consumer) -> None:
        """Have the consumer fetch the next records."""
        consumer.assign([TopicPartition(self._options.topic, *place) for place in self._read_to.items()])
        self._is_assigned = True

    def _part_of_cluster(self, consumer: Consumer, max_records: int) -> RecordBlock | None:
        """Return the next part that a cluster has read, or None if the consumer is to read."""
        cluster = self._cluster
        if cluster is None:
            return None
        part = cluster.next_part()
        if part is None and cluster.wants(self._lag) and time.monotonic() >= self._asks_cluster_at:
            self._fetch_by_cluster(consumer, cluster, max_records)
            part = cluster.next_part()
        if part is None:
            return None
        behind = part.next - self._next[part.partition]
        self._next[part.partition] = self._read_to[part.partition] = part.next
        left = self._lag.records if self._lag is not None else None
        self._lag = Lag(records=max(0, (left or 0) - behind))
        chunk = _as_chunk(part.rows, self._position(), has_ended=False)
        return RecordBlock(lambda: chunk, is_large=False)

    def _fetch_by_cluster(self, consumer: Consumer, cluster: ClusterReader, max_records: int) -> None:
        # Records that this consumer has prefetched would be read twice.
        consumer.unassign()
        self._is_assigned = False
        self._ids.came(has_records=False)
        self._look_for_partitions(consumer)
        topic = TopicOfBroker(consumer, self._options.topic, self._problems)
        # Do not request records after the end of the committed ones: a task would wait for them.
        ends = {partition: topic.ends(partition) for partition in self._read_to}
        self._lag = Lag(records=sum(max(0, end - self._read_to[partition]) for partition, (_, end) in ends.items()))
        cluster.fetch(self._read_to, ends, max_records)
        self._asks_cluster_at = time.monotonic() + (_NOT_ENOUGH_S if not cluster.has_parts else 0.0)

    def _partitions(self, consumer: Consumer) -> tuple[int, ...]:
        """Return the numbers of the topic's partitions."""
        name = self._options.topic
        topic = find_topics(consumer, name, self._problems, is_cancelled=self._closed.is_set)[name]
        if topic.error is not None:
            raise self._problems.failure(topic.error)
        self._problems.clear_transient()
        return tuple(topic.partitions)

    def _records(self, consumer: Consumer, most: int, timeout_s: float) -> list[Message]:
        """Return records in the order in which the pipeline gets them, and handle all other messages that came with them."""
        if self._in_order is not None and (taken := self._in_order.take(most)):
            return taken  # type: ignore[return-value]
        came = consumer.consume(1, timeout_s)
        if came:
            came += consumer.consume(most - 1, _LINGER_S) if most > 1 else []
        elif self._problems.are_serious:
            self._check_brokers(consumer)
        if came or not self._problems.are_serious:
            self._ids.came(any(message.error() is None for message in came))
        self._look_for_partitions(consumer)
        records = [message for message in came if message.error() is None or self._handle_event(consumer, message)]
        for partition, place in offsets_after(records).items():
            # The end of the partition may have come with its last records, and transaction markers may follow these.
            self._read_to[partition] = max(self._read_to[partition], place)
        if self._in_order is None:
            return records
        return self._order(consumer, self._in_order, records, most)

    def _check_brokers(self, consumer: Consumer) -> None:
        """Check that the brokers are back.

        The client reports only once that they are away, maybe while it still has records of them.

        :raises ConnectorFailure: when they are not, or one refuses
        """
        try:
            consumer.list_topics(self._options.topic, timeout=LOOK_S)
        except KafkaException as error:
            raise self._problems.failure(error.args[0]) from error
        self._problems.clear_transient()
        if self._problems.are_serious:
            raise self._problems.failure()

    def _order(self, consumer: Consumer, in_order: InTimeOrder, records: Iterable[Message], most: int) -> list[Message]:
        for record in records:
            in_order.add(record)
        for partition in self._find_ended():
            in_order.note_end(partition)
        taken = in_order.take(most)
        full = in_order.full
        consumer.pause([TopicPartition(self._options.topic, partition) for partition in full - self._paused])
        consumer.resume([TopicPartition(self._options.topic, partition) for partition in self._paused - full])
        self._paused = full
        return taken  # type: ignore[return-value]

    def _handle_event(self, consumer: Consumer, message: Message) -> bool:
        """Handle a message that is not a record.

        :returns: False if the message is not a record, else True
        """
        error, partition = message.error(), message.partition() or 0
        if error is None:
            return True
        if error.code() == KafkaError._PARTITION_EOF:
            self._ends[partition] = message.offset() or 0
            # Transaction markers have offsets, too.
            self._read_to[partition] = max(self._read_to[partition], self._ends[partition])
        elif error.code() == KafkaError._AUTO_OFFSET_RESET:
            self._go_on_after_expiry(consumer, partition, message.offset() or 0)
        elif error.code() in NO_TOPIC or not error.retriable():
            raise self._problems.failure(error)
        return False

    def _go_on_after_expiry(self, consumer: Consumer, partition: int, asked: int) -> None:
        self._ids.check()
        wanted = self._read_to[partition]
        ends = TopicOfBroker(consumer, self._options.topic, self._problems).find_loss(partition, wanted, asked)
        if ends is not None:
            oldest, _ = ends
            if not self._options.resume_earliest_if_data_expires or oldest <= wanted:
                raise make_expired_failure(self._options.topic, partition, wanted, oldest if oldest > wanted else None)
            self._report_skipped({partition: wanted}, {partition: oldest})
            self._read_to[partition] = oldest
        # Assign the partition again, since seek does not work after a failure.
        place = TopicPartition(self._options.topic, partition, self._read_to[partition])
        consumer.incremental_unassign([place])
        consumer.incremental_assign([place])

    def _look_for_partitions(self, consumer: Consumer) -> None:
        """Find new partitions, and read them from their beginnings.

        :raises TransientConnectorFailure: when the topic is gone
        """
        now = time.monotonic()
        if now < self._looked_for_partitions + _PARTITIONS_S:
            return
        self._looked_for_partitions = now
        try:
            topic = consumer.list_topics(self._options.topic, timeout=LOOK_S).topics[self._options.topic]
        except KafkaException:
            # The next look will find them.
            return
        if topic.error is not None and topic.error.code() in NO_TOPIC:
            raise self._problems.failure(topic.error)
        if self._options.partitions is None and topic.error is None:
            self._add_partitions(consumer, topic.partitions)

    def _add_partitions(self, consumer: Consumer, existing: Iterable[int]) -> None:
        topic = TopicOfBroker(consumer, self._options.topic, self._problems)
        added = {partition: topic.ends(partition)[0] for partition in sorted(existing) if partition not in self._read_to}
        for partition, place in added.items():
            self._next[partition] = self._read_to[partition] = place
            if self._in_order is not None:
                self._in_order.add_partition(partition)
            logger.info("%s: partition %d is new, and read from offset %d", self._where, partition, place)
        # While a cluster reads, partitions are assigned when it is done.
        if added and self._is_assigned:
            consumer.incremental_assign([TopicPartition(self._options.topic, *place) for place in added.items()])

    def _find_ended(self) -> set[int]:
        """Return the partitions that have been read to their ends."""
        return {partition for partition, end in self._ends.items() if self._read_to[partition] <= end}

    def _has_ended(self, consumer: Consumer) -> bool:
        if not self._options.enable_partition_eof or self._find_ended() != set(self._read_to):
            return False
        self._looked_for_partitions = 0.0
        self._look_for_partitions(consumer)
        return self._find_ended() == set(self._read_to) and (self._in_order is None or self._in_order.is_empty)

    def _advance(self, records: Iterable[Message]) -> None:
        """Move the position past records that are given to the pipeline."""
        if self._in_order is None or self._in_order.is_empty:
            self._next.update(self._read_to)
        else:
            self._next.update(offsets_after(records))

    def _chunk(self, records: Sequence[Message], position: Position, has_ended: bool) -> InputChunk:
        with failures_of_format(self._where):
            rows = self._reader.read(records)
        return _as_chunk(rows, position, has_ended)

    def _measure_lag(self, consumer: Consumer) -> None:
        now = time.monotonic()
        if now < self._measured_lag + _LAG_S:
            return
        self._measured_lag = now
        records = 0
        for partition, place in self._next.items():
            # Use the watermarks of the last fetches, without a request.
            ends = consumer.get_watermark_offsets(TopicPartition(self._options.topic, partition), cached=True)
            if ends is None or ends[1] < 0:
                return
            records += max(0, ends[1] - place)
        self._lag = Lag(records=records)

    def _position(self) -> Position:
        position: Position = {"offsets": {str(partition): place for partition, place in sorted(self._next.items())}}
        topic_id = self._ids.id_of(self._options.topic)
        return position if topic_id is None else {**position, "topic_id": topic_id}

    def _report_skipped(self, known: Mapping[int, int], places: Mapping[int, int]) -> None:
        for partition, place in places.items():
            if place > known.get(partition, place):
                logger.warning(
                    "%s: records %d to %d of partition %d had been removed from the topic before they were read",
                    self._where,
                    known[partition],
                    place - 1,
                    partition,
                )

    def _log_commit_failure(self, error: KafkaError | None, _: Sequence[TopicPartition]) -> None:
        if error is not None:
            logger.warning("%s: the offsets of group %s were not committed: %s", self._where, self._group, error.str())


def _as_chunk(rows: RecordRows, position: Position, has_ended: bool) -> InputChunk:
    return InputChunk(
        changes=rows.changes,
        records=rows.records,
        size_bytes=rows.size_bytes,
        position=position,
        parse_errors=tuple(CountedError("parse", error.message, error.offset) for error in rows.errors),
        num_parse_errors=rows.num_errors,
        end_of_input=has_ended,
    )
