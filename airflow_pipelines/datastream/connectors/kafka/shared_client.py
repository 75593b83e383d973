"""The client that all readers of a source share in a process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from airflow_pipelines.streams.sources import SourceReader

if TYPE_CHECKING:
    from airflow_pipelines.datastream.connectors.kafka.reading import KafkaReading
    from airflow_pipelines.datastream.connectors.kafka.reading_settings import ReadingSettings


class SharedClient:
    """A reference-counted client, which exists while somebody uses it.

    A copy of the source, in this or another process, has its own client. Only the thread that reads the source uses it.
    """

    def __init__(self) -> None:
        self._client: KafkaReading | None = None
        self._users = 0

    def __reduce__(self) -> tuple[type[SharedClient], tuple[()]]:
        return SharedClient, ()

    @contextmanager
    def borrow(self, settings: ReadingSettings) -> Iterator[KafkaReading]:
        """Use the client while the context lasts.

        :param settings: the settings of the source
        :returns: the client
        """
        client = self.take(settings)
        try:
            yield client
        finally:
            self.give_back()

    def reader(self, settings: ReadingSettings, split: Any, position: Any | None) -> SourceReader:
        """Return a reader of a partition that uses the client.

        :param settings: the settings of the source
        :param split: the partition
        :param position: the offset of the next record; None for the first
        :returns: the reader
        """
        client = self.take(settings)
        try:
            return client.reader(split, position, self.give_back)
        except BaseException:
            self.give_back()
            raise

    def take(self, settings: ReadingSettings) -> KafkaReading:
        """Return the client and count a user. :meth:`give_back` ends the use.

        :param settings: the settings of the source
        :returns: the client
        """
        if self._client is None:
            # Only programs that read Kafka need its client.
            from airflow_pipelines.datastream.connectors.kafka.reading import KafkaReading

            self._client = KafkaReading(settings)
        self._users += 1
        return self._client

    def give_back(self) -> None:
        """End a use that :meth:`take` began. The last user closes the client."""
        self._users -= 1
        if self._users == 0 and self._client is not None:
            client, self._client = self._client, None
            client.close()
