"""A producer of records, and the outcome of each of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, Generic, TypeVar

from confluent_kafka import KafkaError, KafkaException, Message

from airflow_pipelines.systems.kafka.clients import new_producer
from airflow_pipelines.systems.kafka.problems import TOO_LARGE, Problems, serve_callbacks

FailureT = TypeVar("FailureT", bound=Exception)
_LOOK_S: Final = 1.0
"""The time in seconds after which the reason is looked for why records are not acknowledged."""
_BUFFER_S: Final = 0.1
"""The time in seconds to wait for room in the queue of the client."""
Headers = Sequence[tuple[str, bytes | str | None]]


class RecordProducer(Generic[FailureT]):
    """A producer that keeps the first failure of its records.

    :param properties: the properties of the client
    :param problems: the problems of the client, which make the errors
    :param waits_for_brokers: True if records wait while all brokers are away, for as long as the client retries
        (``message.timeout.ms``); False if that is an error
    :raises Exception: the lasting failure of the problems if a property has an invalid value
    """

    def __init__(self, properties: Mapping[str, Any], problems: Problems[FailureT], *, waits_for_brokers: bool) -> None:
        self.problems = problems
        self.failed: KafkaError | None = None
        """The error of the first record that was not written; another one in place of a record that was purged."""
        self._waits_for_brokers = waits_for_brokers
        own = {"delivery.report.only.error": True, "on_delivery": self._note}
        self.client = new_producer({**properties, **own}, problems)

    def send(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None = None,
        *,
        headers: Headers = (),
        partition: int | None = None,
        timestamp: int | None = None,
        deadline: float | None = None,
        on_refusal: Callable[[], None] | None = None,
    ) -> None:
        """Enqueue a record in the client.

        :param topic: the topic
        :param value: the value; None for a tombstone
        :param key: the key
        :param headers: the headers, in order
        :param partition: the partition; None for the one that follows from the key
        :param timestamp: milliseconds since 1970; None for now
        :param deadline: the monotonic time until which to wait for room in the queue; None for no limit
        :param on_refusal: the function to call if the client or the brokers refuse the record because of its size, which is then no
            failure
        :raises Exception: the failure of the problems if the client does not accept it
        """
        more: dict[str, Any] = {"headers": list(headers)} if headers else {}
        if partition is not None:
            more["partition"] = partition
        if timestamp is not None:
            more["timestamp"] = timestamp
        if on_refusal is not None:
            more["on_delivery"] = self._note_or_call(on_refusal)
        while True:
            try:
                self.client.produce(topic, value, key, **more)
                return
            except BufferError as error:
                serve_callbacks(lambda: self.client.poll(_BUFFER_S), self.problems)
                if self.failed is not None or self._is_hopeless() or (deadline is not None and time.monotonic() > deadline):
                    raise self.problems.failure(self.failed) from error
            except KafkaException as error:
                self._refuse(error, topic, value, key, on_refusal)
                return

    def _refuse(
        self, error: KafkaException, topic: str, value: bytes | None, key: bytes | None, on_refusal: Callable[[], None] | None
    ) -> None:
        """Handle the refusal of the client to take a record."""
        if error.args[0].code() in TOO_LARGE:
            if on_refusal is not None:
                on_refusal()
                return
            self.failed = error.args[0]
        size = len(value or b"") + len(key or b"")
        raise self.problems.failure(error.args[0], topic=topic, size=size) from error

    def serve(self) -> None:
        """Serve the callbacks of the client."""
        serve_callbacks(lambda: self.client.poll(0), self.problems)

    def check(self) -> None:
        """Raise an error if a record was not written.

        :raises Exception: the failure of the problems if a record was not written, or a broker refuses to serve
        """
        if self.failed is not None or self.problems.is_refused or self.problems.fatal is not None:
            raise self.problems.failure(self.failed)

    @property
    def has_too_large(self) -> bool:
        """True if a record was larger than the client or the brokers take."""
        return self.failed is not None and self.failed.code() in TOO_LARGE

    def take_failure(self) -> FailureT | None:
        """Return the failure of a record that was not written, and clear it; None if there is none."""
        failed, self.failed = self.failed, None
        return None if failed is None else self.problems.failure(failed)

    def flush(self, deadline: float | None = None, is_lost: Callable[[], bool] = lambda: False) -> None:
        """Wait until the outcome of each record is known.

        :param partition: the partition; None for the one that follows from the key
        :param timestamp: milliseconds since 1970; None for now
        :param deadline: the monotonic time until which to wait; None to wait for as long as the client retries
        :param is_lost: the function that returns True if nothing more is written anyway
        :raises Exception: the failure of the problems if the client cannot go on, or the deadline has passed
        """
        while serve_callbacks(lambda: self.client.flush(_LOOK_S), self.problems) and not is_lost():
            if self._is_hopeless() or (deadline is not None and time.monotonic() > deadline):
                raise self.problems.failure(self.failed)

    def close(self, seconds: float = 0) -> None:
        """Disconnect from the brokers. Records that were not acknowledged by then are dropped.

        :param seconds: the time to wait for acknowledgements
        """
        with suppress(KafkaException, SystemError):
            # A client that has failed for good raises its error again.
            if seconds:
                serve_callbacks(lambda: self.client.flush(seconds), self.problems)
            self.client.purge()
            serve_callbacks(lambda: self.client.flush(0), self.problems)

    def _is_hopeless(self) -> bool:
        """Return True if the records in the queue are not written without a new client, or without brokers."""
        if not self._waits_for_brokers:
            return self.problems.are_serious
        return self.problems.is_refused or self.problems.fatal is not None

    def _note(self, error: KafkaError | None, _: Message) -> None:
        if error is not None and (self.failed is None or self.failed.code() == KafkaError._PURGE_QUEUE):
            self.failed = error

    def _note_or_call(self, on_refusal: Callable[[], None]) -> Callable[[KafkaError | None, Message], None]:
        def note(error: KafkaError | None, record: Message) -> None:
            if error is not None and error.code() in TOO_LARGE:
                on_refusal()
            else:
                self._note(error, record)

        return note
