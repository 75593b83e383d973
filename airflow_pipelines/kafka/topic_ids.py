"""Notices that a topic was deleted and made anew: it has its old name and its old offsets, and other records at them."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import TimeoutError as FutureTimeoutError
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException, TopicCollection, Uuid
from confluent_kafka.admin import AdminClient

from airflow_pipelines.kafka.properties import SHARED_PROPERTIES

logger = logging.getLogger(__name__)

_SERVERS: Final = "bootstrap.servers"
_ANSWER_S: Final = 5.0
"""The time that a broker may take for an answer at the beginning ..."""
_LOOK_S: Final = 1.0
"""... and meanwhile."""
_PAUSE_S: Final = 0.2
"""A topic cannot be made anew in less time without records, so it is not asked again sooner."""
_EVERY_S: Final = 10.0
"""The time after which it is asked in any case."""
_NO_ID: Final = str(Uuid(0, 0))
"""The id of every topic of a broker that does not know of ids."""
_CANNOT: Final = frozenset({KafkaError._UNSUPPORTED_FEATURE, KafkaError.UNSUPPORTED_VERSION})
_NO_TOPIC: Final = frozenset({KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC})


class TopicIds:
    """The ids of topics that somebody reads: a topic that is made anew has another one.

    :param properties: those of the client that reads
    :param made_anew: gives the failure of a topic that was
    """

    def __init__(self, properties: Mapping[str, Any], made_anew: Callable[[str], Exception]) -> None:
        own = {name: value for name, value in properties.items() if name in SHARED_PROPERTIES or name == _SERVERS}
        # Who reads says what is wrong with the brokers.
        self._properties = {**own, "error_cb": lambda error: logger.debug("%s", error), "logger": logger}
        self._made_anew = made_anew
        self._admin: AdminClient | None = None
        self._known: dict[str, str | None] = {}
        self._asked = self._came = -math.inf
        self._again_s = _PAUSE_S
        """The time until it is asked again: longer after each question that was not answered."""

    def begin(self, known: Mapping[str, str | None]) -> Mapping[str, str]:
        """Find out the ids of topics, which are those of before.

        :param known: by name of a topic its id when it was read before; None when it was not, or that is not known
        :returns: by name the ids, without those that no broker tells
        :raises KafkaException: when it is not told whether they are those of before
        :raises Exception: what the failure of a topic is that was made anew
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
        """Read a topic; whether it is that one is looked for when something comes.

        :param name: its name
        :param topic_id: its id when it was read before; None when it was not, or that is not known
        :raises Exception: what its failure is when another id of it is known
        """
        known = self._known.setdefault(name, topic_id)
        if known is None:
            self._known[name] = topic_id
        elif topic_id not in {None, known}:
            raise self._made_anew(name)

    def accept(self, name: str) -> None:
        """Take a topic that was made anew in place of the one that was read."""
        self._known[name] = None

    def id_of(self, name: str) -> str | None:
        """The id of a topic that was asked for; None when it is not known."""
        return self._known.get(name)

    def came(self, has_records: bool) -> None:
        """Look now and then whether the topics are those of before, and before anything is made of records that follow a pause.

        :param has_records: whether records have come
        :raises Exception: what the failure of a topic is that was made anew
        """
        now = time.monotonic()
        after_pause = has_records and now > self._came + _PAUSE_S
        if now > self._asked + (self._again_s if after_pause else _EVERY_S):
            self.check()
        # Where there was no answer the next records still are those that follow the pause.
        if has_records and (not after_pause or self._again_s == _PAUSE_S):
            self._came = time.monotonic()

    def check(self) -> bool:
        """Look whether the topics are those of before, as when a place is not in one.

        :returns: whether that was told; a broker that is away is reported by who reads
        :raises Exception: what the failure of a topic is that was made anew
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
        found: dict[str, str] = {}
        for name, answer in admin.describe_topics(TopicCollection(names), request_timeout=patience_s).items():
            try:
                topic_id = str(answer.result(patience_s + _LOOK_S).topic_id)
            except FutureTimeoutError as error:
                raise KafkaException(KafkaError(KafkaError._TIMED_OUT)) from error
            except KafkaException as error:
                if error.args[0].code() in _NO_TOPIC | _CANNOT:
                    continue
                raise
            if topic_id != _NO_ID:
                found[name] = topic_id
        return found
