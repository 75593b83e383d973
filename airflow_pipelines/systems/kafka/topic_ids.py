"""Detection of topics that were deleted and recreated, with the old name and offsets but other records."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import TimeoutError as FutureTimeoutError
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException, TopicCollection, Uuid
from confluent_kafka.admin import AdminClient

from airflow_pipelines.systems.kafka.problems import NO_TOPIC
from airflow_pipelines.systems.kafka.properties import CLIENT_PROPERTIES

logger = logging.getLogger(__name__)

_ANSWER_S: Final = 5.0
"""The maximum time in seconds that a broker may take to answer at the beginning."""
_LOOK_S: Final = 1.0
"""The maximum time in seconds that a broker may take to answer later."""
_PAUSE_S: Final = 0.2
"""The minimum time in seconds between two queries: recreating a topic causes a gap in its records of at least this length."""
_EVERY_S: Final = 10.0
"""The time in seconds after which the ids are queried in any case."""
_NO_ID: Final = str(Uuid(0, 0))
"""The id of every topic at a broker that does not support ids."""
_CANNOT: Final = frozenset({KafkaError._UNSUPPORTED_FEATURE, KafkaError.UNSUPPORTED_VERSION})


class TopicIds:
    """The ids of topics that are read. A topic that is recreated has another id.

    :param properties: the properties of the client that reads
    :param made_anew: the function that returns the error for a topic that was recreated
    """

    def __init__(self, properties: Mapping[str, Any], made_anew: Callable[[str], Exception]) -> None:
        own = {name: value for name, value in properties.items() if name in CLIENT_PROPERTIES}
        # The reader reports problems with the brokers, so this client only logs them at debug level.
        self._properties = {**own, "error_cb": lambda error: logger.debug("%s", error), "logger": logger}
        self._made_anew = made_anew
        self._admin: AdminClient | None = None
        self._known: dict[str, str | None] = {}
        self._asked = self._came = -math.inf
        self._again_s = _PAUSE_S
        """The time in seconds until the next query, which grows with each query that was not answered."""

    def begin(self, known: Mapping[str, str | None]) -> Mapping[str, str]:
        """Return the ids of topics after checking that they are the expected ones.

        :param known: the id of each topic when it was read before, by name; None if it was not read before, or the id is unknown
        :returns: the ids by name, without those that no broker reports
        :raises KafkaException: if it cannot be checked whether they are the expected ones
        :raises Exception: if a topic was recreated
        """
        for name, topic_id in known.items():
            self.expect(name, topic_id)
        try:
            self._look(known, _ANSWER_S)
            self._asked = time.monotonic()
        except KafkaException as error:
            if any(known.values()):
                raise
            logger.debug("the ids of topics are not known yet: %s", error)
        return {name: topic_id for name in known if (topic_id := self._known[name]) is not None}

    def expect(self, name: str, topic_id: str | None) -> None:
        """Register a topic. Its id is checked when records arrive.

        :param name: the name of the topic
        :param topic_id: the id when it was read before; None if it was not read before, or the id is unknown
        :raises Exception: if another id of the topic is known
        """
        known = self._known.setdefault(name, topic_id)
        if known is None:
            self._known[name] = topic_id
        elif topic_id not in {None, known}:
            raise self._made_anew(name)

    def accept(self, name: str) -> None:
        """Accept a topic that was recreated in place of the one that was read."""
        self._known[name] = None

    def id_of(self, name: str) -> str | None:
        """Return the id of a topic; None if it is unknown."""
        return self._known.get(name)

    def came(self, has_records: bool) -> None:
        """Check the ids of the topics periodically, and before records that follow a pause are processed.

        :param has_records: True if records have arrived
        :raises Exception: if a topic was recreated
        """
        now = time.monotonic()
        after_pause = has_records and now > self._came + _PAUSE_S
        if now > self._asked + (self._again_s if after_pause else _EVERY_S):
            self.check()
        # Without an answer, the next records still count as those after the pause.
        if has_records and (not after_pause or self._again_s == _PAUSE_S):
            self._came = time.monotonic()

    def check(self) -> bool:
        """Check the ids of the topics, as when an offset is out of range.

        :returns: True if a broker has answered; the reader reports a broker that is away
        :raises Exception: if a topic was recreated
        """
        try:
            self._look(self._known, _LOOK_S)
        except KafkaException as error:
            logger.debug("the ids of topics are not known: %s", error)
            self._again_s = min(2 * self._again_s, _EVERY_S)
            return False
        finally:
            self._asked = time.monotonic()
        self._again_s = _PAUSE_S
        return True

    def _look(self, names: Iterable[str], patience_s: float) -> None:
        for name, topic_id in self._ask([*names], patience_s).items():
            self.expect(name, topic_id)

    def _ask(self, names: list[str], patience_s: float) -> Mapping[str, str]:
        if not names:
            return {}
        admin = self._admin = self._admin or AdminClient(self._properties)
        ids: dict[str, str] = {}
        for name, answer in admin.describe_topics(TopicCollection(names), request_timeout=patience_s).items():
            try:
                topic_id = str(answer.result(patience_s + _LOOK_S).topic_id)
            except FutureTimeoutError as error:
                raise KafkaException(KafkaError(KafkaError._TIMED_OUT)) from error
            except KafkaException as error:
                if error.args[0].code() in NO_TOPIC | _CANNOT:
                    continue
                raise
            if topic_id != _NO_ID:
                ids[name] = topic_id
        return ids
