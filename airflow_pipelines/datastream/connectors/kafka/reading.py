"""Reading of Kafka partitions with one client for all of them."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, TypeAlias

from confluent_kafka import KafkaError, KafkaException, Message, TopicPartition

from airflow_pipelines.datastream.connectors.kafka.offsets import KafkaOffsetResetStrategy
from airflow_pipelines.datastream.connectors.kafka.partition_discovery import PartitionDiscovery, Split
from airflow_pipelines.datastream.connectors.kafka.properties import GROUP, client_properties
from airflow_pipelines.datastream.connectors.kafka.reading_settings import ReadingSettings
from airflow_pipelines.datastream.connectors.kafka.records import ConsumerRecord, ValueOnly
from airflow_pipelines.streams.errors import StreamProgramError
from airflow_pipelines.streams.sources import Polled, SourceReader
from airflow_pipelines.systems.kafka.clients import close_client, new_reader
from airflow_pipelines.systems.kafka.problems import NO_TOPIC, Problems
from airflow_pipelines.systems.kafka.records import headers_of, next_offset, timestamp_of
from airflow_pipelines.systems.kafka.topic_ids import TopicIds
from airflow_pipelines.systems.kafka.topics import TopicOfBroker

_log = logging.getLogger("airflow_pipelines.datastream")
_MOST_WAITING: Final = 20_000
"""The number of waiting records of a partition at which fetching pauses."""
_NO_GROUP: Final = "airflow-pipelines-stream-program"
"""The group for the client if nothing is committed, since the client requires one."""
_CLOSE_S: Final = 5.0

_Key = tuple[str, int]
Position: TypeAlias = int | tuple[int, str]
"""The offset of the next record, with the id of the topic if that is known."""


class _TopicMadeAnewError(StreamProgramError):
    """A topic that was deleted and recreated, and has other records at the offsets that were read."""

    def __init__(self, topic: str, message: str) -> None:
        super().__init__(message)
        self.topic = topic


class KafkaReading:
    """A client, and the partitions that it reads."""

    def __init__(self, settings: ReadingSettings) -> None:
        """Connect.

        :param settings: the settings for reading
        :raises StreamProgramError: if a property has an invalid value
        """
        self._settings = settings
        self._where = f"KafkaSource {settings.choice}"
        servers = client_properties({"servers": settings.servers})["servers"]
        self._problems = Problems(self._where, servers, "the source", StreamProgramError, StreamProgramError)
        given = {GROUP: _NO_GROUP, **client_properties(settings.properties)}
        self._consumer = new_reader(given, self._problems, self._log_commit_failure)
        self._ids = TopicIds(client_properties(settings.properties), self._made_anew)
        self._places = PartitionDiscovery(settings, self._consumer, self._problems, self._where)
        self._partitions: dict[_Key, PartitionReader] = {}
        self._assigned: set[_Key] = set()
        self._commits: dict[_Key, int] = {}
        self._is_down = False

    def _made_anew(self, topic: str) -> _TopicMadeAnewError:
        return _TopicMadeAnewError(
            topic,
            f"{self._where}: topic {topic!r} was deleted and made anew, so that places in the old one mean nothing in it. Give the"
            " source another uid to read it from where the source begins, or set the property 'auto.offset.reset' to 'earliest' or"
            " 'latest' to go on there",
        )

    def topic_id(self, topic: str) -> str | None:
        """Return the id of a topic that is read; None if no broker has reported it."""
        return self._ids.id_of(topic)

    def _accept_recreated(self, failure: _TopicMadeAnewError) -> None:
        """Resume in a topic that was recreated, if the program allows it."""
        if self._settings.after_expiry is KafkaOffsetResetStrategy.NONE:
            raise failure
        self._ids.accept(failure.topic)
        self._ids.check()
        _log.warning("%s: topic %r was deleted and made anew; reading goes on there", self._where, failure.topic)
        for (topic, partition), reader in self._partitions.items():
            if topic == failure.topic and not reader.is_finished and not reader.is_of(self._ids.id_of(topic)):
                reader.begin_anew(self._find_first_offset(failure, partition))
                self._fetch_from(reader)

    def _find_first_offset(self, failure: _TopicMadeAnewError, partition: int) -> int:
        """Return the offset where to begin in a partition of a topic that was recreated."""
        if self._settings.after_expiry is KafkaOffsetResetStrategy.NONE:
            raise failure
        oldest, end = TopicOfBroker(self._consumer, failure.topic, self._problems).ends(partition)
        return oldest if self._settings.after_expiry is KafkaOffsetResetStrategy.EARLIEST else end

    def _fetch_from(self, reader: PartitionReader) -> None:
        # seek() does not work on a partition that has failed.
        topic, partition = reader.key
        self._consumer.incremental_unassign([TopicPartition(topic, partition)])
        self._consumer.incremental_assign([TopicPartition(topic, partition, reader.wanted)])

    def first_splits(self) -> Sequence[Split]:
        """Return the existing partitions, with the offsets where each begins and ends.

        :raises StreamProgramError: if they cannot be determined
        """
        return self._places.first_splits()

    def new_splits(self, known: Iterable[Split]) -> Sequence[Split]:
        """Return partitions that were made since.

        :param known: the partitions that are read already
        """
        splits = self._places.new_splits(known)
        for topic, partition, offset, _ in splits:
            _log.info("%s: partition %d of %s is new, and read from offset %d", self._where, partition, topic, offset)
        return splits

    def reader(self, split: Split, position: Position | None, on_close: Callable[[], None]) -> PartitionReader:
        """Return a reader of a partition.

        :param split: the partition
        :param position: the position to resume at; None for the first record
        :param on_close: the function to call when the reader is closed
        """
        topic, partition, first, stop = split
        offset, topic_id = (position, None) if position is None or isinstance(position, int) else position
        try:
            # Brokers may be away now, so the id of the topic is checked before the first record.
            self._ids.expect(topic, topic_id)
        except _TopicMadeAnewError as failure:
            # A snapshot that was taken during the switch to a recreated topic has offsets in both topics.
            self._accept_recreated(failure)
            if topic_id != self._ids.id_of(topic):
                offset = self._find_first_offset(failure, partition)
        reader = PartitionReader(self, (topic, partition), first if offset is None else offset, stop, on_close)
        self._partitions[reader.key] = reader
        if not reader.is_finished:
            self._assigned.add(reader.key)
            self._consumer.incremental_assign([TopicPartition(topic, partition, reader.next_offset)])
        return reader

    def receive(self, most: int) -> None:
        """Hand records that have arrived to the readers of their partitions, without waiting for more.

        :param most: the maximum number of records
        :raises StreamProgramError: if a broker refuses, or records have been removed
        """
        self._commit_positions()
        came = self._consumer.consume(most, 0)
        if came:
            self._note_up()
        elif self._problems.are_serious:
            self._note_down()
        try:
            if came or not self._problems.are_serious:
                self._ids.came(any(message.error() is None for message in came))
        except _TopicMadeAnewError as failure:
            self._accept_recreated(failure)
            came = [message for message in came if message.topic() != failure.topic]
        records: dict[_Key, list[Message]] = {}
        events: list[Message] = []
        for message in came:
            if message.error() is None:
                records.setdefault((message.topic() or "", message.partition() or 0), []).append(message)
            else:
                events.append(message)
        for key, messages in records.items():
            if key in self._partitions:
                self._partitions[key].take(messages)
        for event in events:
            self._take_event(event)

    def _take_event(self, message: Message) -> None:
        reader = self._partitions.get((message.topic() or "", message.partition() or 0))
        error = message.error()
        if reader is None or error is None:
            return
        if error.code() == KafkaError._PARTITION_EOF:
            reader.end_at(message.offset() or 0)
        elif error.code() == KafkaError._AUTO_OFFSET_RESET:
            self._go_on_after_expiry(reader, message.offset() or 0)
        elif not error.retriable() and error.code() not in NO_TOPIC:
            raise self._problems.failure(error)
        else:
            _log.warning("%s: partition %d of %s: %s", self._where, reader.key[1], reader.key[0], error.str())

    def _go_on_after_expiry(self, reader: PartitionReader, asked: int) -> None:
        try:
            self._ids.check()
        except _TopicMadeAnewError as failure:
            self._accept_recreated(failure)
            return
        topic, partition = reader.key
        wanted = reader.wanted
        ends = TopicOfBroker(self._consumer, topic, self._problems).find_loss(partition, wanted, asked)
        if ends is None:
            self._fetch_from(reader)
            return
        oldest, end = ends
        strategy = self._settings.after_expiry
        if strategy is KafkaOffsetResetStrategy.NONE:
            raise StreamProgramError(
                f"{self._where}: offset {wanted} of partition {partition} of {topic} comes next, and the topic has {oldest} to"
                f" {end}: records were removed before they were read, or the topic was made anew. Keep records for longer"
                " ('retention.ms' of the topic), or set the property 'auto.offset.reset' to 'earliest' or 'latest' to go on there"
            )
        place = oldest if strategy is KafkaOffsetResetStrategy.EARLIEST else end
        _log.warning(
            "%s: offset %d of partition %d of %s is not there any more; reading goes on at %d",
            self._where,
            wanted,
            partition,
            topic,
            place,
        )
        reader.wanted = place
        self._fetch_from(reader)

    def _note_up(self) -> None:
        self._problems.clear_transient()
        if self._is_down:
            self._is_down = False
            _log.warning("%s: a broker answers again", self._where)

    def _note_down(self) -> None:
        failure = self._problems.failure()
        if self._problems.is_refused or self._problems.fatal is not None:
            raise failure
        if not self._is_down:
            # The client keeps trying, and the program has other work to do.
            self._is_down = True
            _log.warning("%s", failure)

    def pause(self, key: _Key) -> None:
        """Pause fetching of a partition."""
        self._consumer.pause([TopicPartition(*key)])

    def resume(self, key: _Key) -> None:
        """Resume fetching of a partition."""
        self._consumer.resume([TopicPartition(*key)])

    def known_end(self, key: _Key) -> int | None:
        """Return the end of a partition according to the last fetch, without asking a broker; None before the first fetch."""
        ends = self._consumer.get_watermark_offsets(TopicPartition(*key), cached=True)
        return None if ends is None or ends[1] < 0 else ends[1]

    def leave(self, key: _Key) -> None:
        """Stop reading a partition."""
        if self._partitions.pop(key, None) is not None:
            self.unassign(key)

    def unassign(self, key: _Key) -> None:
        """Unassign a partition, so that nothing of it is fetched any more."""
        if key in self._assigned:
            self._assigned.remove(key)
            self._consumer.incremental_unassign([TopicPartition(*key)])

    def record_maker(self) -> Callable[[Message], Any]:
        """Return the function that converts a message to an element."""
        deserializer = self._settings.deserializer
        if isinstance(deserializer, ValueOnly):
            deserialize = deserializer.schema.deserialize
            return lambda message: None if (value := message.value()) is None else deserialize(value)
        return lambda message: deserializer.deserialize(_record(message))

    def commit(self, key: _Key, offset: int) -> None:
        """Note that all records before an offset are durable. The offset is committed to the group with the next read."""
        if self._settings.commits:
            self._commits[key] = offset

    def _commit_positions(self) -> None:
        if self._commits:
            places = [TopicPartition(*key, offset) for key, offset in self._commits.items()]
            self._commits.clear()
            self._consumer.commit(offsets=places, asynchronous=True)

    def _log_commit_failure(self, error: KafkaError | None, _: Sequence[TopicPartition]) -> None:
        if error is not None:
            _log.warning("%s: the offsets of group %s were not committed: %s", self._where, self._settings.group, error.str())

    def close(self) -> None:
        """Commit pending offsets and disconnect from the brokers, without waiting long for unreachable ones."""
        if not close_client(self._close, self._problems, self._where, _CLOSE_S):
            _log.warning("%s: no broker has answered for %s s, so the group may not have the last offsets", self._where, _CLOSE_S)

    def _close(self) -> None:
        if self._commits and not self._problems.are_serious:
            places = [TopicPartition(*key, offset) for key, offset in self._commits.items()]
            try:
                self._consumer.commit(offsets=places, asynchronous=False)
            except KafkaException as error:
                self._log_commit_failure(error.args[0], places)
        self._consumer.close()


class PartitionReader(SourceReader):
    """A reader of a partition.

    :param client: the client that fetches its records
    :param key: the topic and number of the partition
    :param first: the offset of the next record
    :param stop: the first offset that is not read; None for no end
    :param on_close: the function to call once when it is closed
    """

    def __init__(self, client: KafkaReading, key: _Key, first: int, stop: int | None, on_close: Callable[[], None]) -> None:
        self.key = key
        self.next_offset = first
        self.wanted = first
        self._client = client
        self._stop = stop
        self._on_close: Callable[[], None] | None = on_close
        self._waiting: deque[Message] = deque()
        self._element = client.record_maker()
        self._topic_id = client.topic_id(key[0])
        self._of_old_topic = 0
        """The number of waiting records of a topic that was recreated since."""
        self._first_of_new = 0
        self._is_paused = False
        self._has_come_to_stop = self.is_finished = stop is not None and first >= stop

    def take(self, messages: list[Message]) -> None:
        """Enqueue records that have arrived.

        :param messages: the records, in order
        """
        if self._has_come_to_stop:
            return
        if self._stop is not None and next_offset(messages[-1]) >= self._stop:
            self._has_come_to_stop = True
            messages = [message for message in messages if next_offset(message) <= self._stop]
        if messages:
            self._waiting.extend(messages)
            self.wanted = next_offset(messages[-1])
        if len(self._waiting) >= _MOST_WAITING and not self._is_paused:
            self._is_paused = True
            self._client.pause(self.key)

    def begin_anew(self, offset: int) -> None:
        """Resume in a topic that was recreated, behind the waiting records of the old one.

        :param offset: the offset of the next record in the new topic
        """
        self.wanted = self._first_of_new = offset
        self._of_old_topic = len(self._waiting)
        if not self._waiting:
            self._leave_old_topic()

    def is_of(self, topic_id: str | None) -> bool:
        """Return True if the next records belong to a topic.

        :param topic_id: the id of the topic; None if it is unknown
        """
        return topic_id is not None and self._topic_id == topic_id

    def _leave_old_topic(self) -> None:
        self.next_offset, self._topic_id = self._first_of_new, None

    def end_at(self, offset: int) -> None:
        """Note that the partition was read to its end, which can be behind transaction markers.

        :param offset: the offset of the next record to be written
        """
        self.wanted = max(self.wanted, offset)
        self._has_come_to_stop = self._has_come_to_stop or (self._stop is not None and offset >= self._stop)

    def poll(self, limit: int) -> Polled:
        """Return the elements of records that have arrived."""
        if self.is_finished:
            return Polled([], finished=True)
        if len(self._waiting) < limit and not self._has_come_to_stop:
            self._client.receive(limit)
        values: list[Any] = []
        timestamps: list[int | None] = []
        waiting, element = self._waiting, self._element
        before = len(waiting)
        message: Message | None = None
        try:
            for _ in range(min(limit, len(waiting))):
                message = waiting.popleft()
                value = element(message)
                if value is not None:
                    values.append(value)
                    timestamps.append(timestamp_of(message))
        except Exception as error:
            if message is not None:
                error.add_note(f"in topic {message.topic()}, partition {message.partition()}, offset {message.offset()}")
            raise
        if message is not None:
            self._note_taken(message, before - len(waiting))
        if self._is_paused and len(waiting) < _MOST_WAITING // 2:
            self._is_paused = False
            self._client.resume(self.key)
        return self._make_polled(values, timestamps)

    def _note_taken(self, last: Message, number: int) -> None:
        """Count the records that were taken."""
        of_old, self._of_old_topic = self._of_old_topic, max(0, self._of_old_topic - number)
        self.next_offset = next_offset(last)
        if of_old and not self._of_old_topic:
            self._leave_old_topic()
            if number > of_old:
                self.next_offset = next_offset(last)

    def _make_polled(self, values: list[Any], timestamps: list[int | None]) -> Polled:
        if not self._waiting:
            # No record between the next offset and the wanted one is left to read.
            self.next_offset = self.wanted
            if self._has_come_to_stop:
                self.is_finished = True
                self._client.unassign(self.key)
        return Polled(values, timestamps, finished=self.is_finished)

    def position(self) -> Position:
        """Return the offset of the next record, and the id of its topic if that is known."""
        self._topic_id = self._topic_id or self._client.topic_id(self.key[0])
        return self.next_offset if self._topic_id is None else (self.next_offset, self._topic_id)

    def left(self) -> int | None:
        """Return the number of unread records at the last fetch, up to the stop offset; None if it is unknown."""
        if self.is_finished:
            return 0
        end = self._client.known_end(self.key)
        if end is None:
            return None
        return max(0, (end if self._stop is None else min(end, self._stop)) - self.next_offset)

    def commit(self, position: Any) -> None:
        """See :meth:`SourceReader.commit`."""
        self._client.commit(self.key, position if isinstance(position, int) else position[0])

    def close(self) -> None:
        """Release the client."""
        on_close, self._on_close = self._on_close, None
        if on_close is not None:
            self._client.leave(self.key)
            on_close()


def _record(message: Message) -> ConsumerRecord:
    return ConsumerRecord(
        message.topic() or "",
        message.partition() or 0,
        message.offset() or 0,
        timestamp_of(message),
        message.key(),
        message.value(),
        headers_of(message),
    )
