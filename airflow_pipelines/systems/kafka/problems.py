"""Problems between a client and Kafka, with remedies, and the distinction between lasting and transient ones."""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Callable
from typing import Any, Final, Generic, TypeVar

from confluent_kafka import KafkaError

FailureT = TypeVar("FailureT", bound=Exception)
logger = logging.getLogger(__name__)

_CREDENTIALS: Final = (
    "Check 'security.protocol', 'sasl.mechanism', 'sasl.username' and 'sasl.password' (or the certificates) of {whose}"
)
_WHAT_TO_DO: Final = {
    KafkaError._AUTHENTICATION: _CREDENTIALS,
    KafkaError.SASL_AUTHENTICATION_FAILED: _CREDENTIALS,
    KafkaError.UNSUPPORTED_SASL_MECHANISM: _CREDENTIALS,
    KafkaError._SSL: _CREDENTIALS,
    KafkaError.TOPIC_AUTHORIZATION_FAILED: "Have the user of {whose} be allowed to use the topic",
    KafkaError.GROUP_AUTHORIZATION_FAILED: "Have the user of {whose} be allowed to use the group, or leave out 'group.id'",
    KafkaError.CLUSTER_AUTHORIZATION_FAILED: "Have the user of {whose} be allowed to write in this cluster",
    KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: (
        "Have the user of {whose} be allowed to use its 'transactional.id', or write without transactions"
    ),
}
"""The remedies of errors that do not pass by themselves, by code."""


class Problems(Generic[FailureT]):
    """The problems that the client of Kafka reports from its own threads."""

    def __init__(
        self, where: str, servers: str, whose: str, lasting: Callable[[str], FailureT], passing: Callable[[str], FailureT]
    ) -> None:
        """Start without problems.

        :param where: the user of the client, and its topic, for messages
        :param servers: the brokers, for messages
        :param whose: the owner of the options to correct, for messages
        :param lasting: the function that makes an error for a lasting failure
        :param passing: the function that makes an error for a transient failure
        """
        self._where = where
        self._servers = servers
        self._whose = whose
        self._new_lasting = lasting
        self._new_passing = passing
        self._lock = threading.Lock()
        self._last: str | None = None
        self._down = False
        self._refused: KafkaError | None = None
        self._is_abandoned = False
        self.fatal: KafkaError | None = None
        """The error after which the client does nothing more; a new client may work."""

    def note(self, error: KafkaError) -> None:
        """Record an error that the client reports (its ``error_cb``).

        :param error: an error about a broker, or all of them
        """
        with self._lock:
            if error.code() in _WHAT_TO_DO:
                self._refused = error
            elif error.fatal():
                self.fatal = error
            elif error.code() == KafkaError._ALL_BROKERS_DOWN:
                self._down = True
            else:
                self._last = error.str()

    def log(self, level: int, text: str, *arguments: object) -> None:
        """Log a message of the client (its ``logger``).

        :param level: the level of the logging module
        :param text: the text with placeholders
        :param arguments: the values of the placeholders
        """
        if not self._is_abandoned:
            logger.log(level, text, *arguments)

    def abandon_client(self) -> None:
        """Stop logging for a client that cannot be closed while its brokers are away, and that keeps trying to reach them."""
        self._is_abandoned = True

    def clear_transient(self) -> None:
        """Clear transient problems, because something has arrived from a broker."""
        with self._lock:
            self._down, self._last = False, None

    @property
    def are_serious(self) -> bool:
        """True if no broker can be reached, or one refuses to serve."""
        return self._down or self._refused is not None or self.fatal is not None

    @property
    def is_refused(self) -> bool:
        """True if a broker refuses to serve, which does not pass by itself."""
        return self._refused is not None

    def failure(self, error: KafkaError | None = None, *, topic: str | None = None, size: int | None = None) -> FailureT:
        """Return the error that explains why nothing is received or sent.

        :param error: the error that a call returned; None if only :meth:`note` knows one
        :param topic: the name of the topic, if messages do not have it anyway
        :param size: the size of a record in bytes, if it is known
        """
        if error is not None and error.code() in NO_TOPIC:
            which = "such topic" if topic is None else f"topic {topic!r}"
            return self._new_passing(
                f"{self._where}: there is no {which} at {self._servers}. Make it; if the name is wrong, correct 'topic' of"
                f" {self._whose}"
            )
        if error is not None and error.code() in TOO_LARGE:
            return self._new_lasting(f"{self._where}: {explain_size(self._whose, size)}.")
        with self._lock:
            refused, last = self._refused, self._last
        if refused is not None:
            return self._make_lasting(refused)
        if error is not None and error.code() in _WHAT_TO_DO:
            return self._make_lasting(error)
        if self.fatal is not None:
            return self._new_passing(f"{self._where}: {self.fatal.str()}. {self._whose.capitalize()} connects anew")
        if error is not None and error.code() not in UNREACHABLE:
            return self._new_passing(f"{self._where}: {error.str()}")
        reason = f" ({last})" if last else ""
        return self._new_passing(
            f"{self._where}: no broker at {self._servers} answers{reason}. It is tried again; if that address is wrong, correct "
            f"'bootstrap.servers' of {self._whose}"
        )

    def invalid_property(self, text: str) -> FailureT:
        """Return the error for a property that the client does not accept.

        :param text: the message of the client
        """
        return self._new_lasting(f"{self._where}: a property of {self._whose} has no value that Kafka's client accepts: {text}")

    def _make_lasting(self, error: KafkaError) -> FailureT:
        what_to_do = _WHAT_TO_DO[error.code()].format(whose=self._whose)
        return self._new_lasting(f"{self._where}: {error.str()}. {what_to_do}.")


def explain_size(whose: str, size: int | None = None) -> str:
    """Return a message that a record is too large.

    :param whose: the owner of the options to correct
    :param size: the number of its bytes, if it is known
    """
    which = "a record" if size is None else f"a record of {size} bytes"
    return (
        f"{which} is larger than the client or the topic takes. Raise 'message.max.bytes' of {whose} and 'max.message.bytes' of the"
        " topic"
    )


def serve_callbacks(call: Callable[[], int], problems: Problems[Any]) -> int:
    """Return the result of a call that serves the callbacks of a producer.

    :param call: the function to call, such as the ``flush`` of the producer
    :param problems: the problems that record a fatal error, which the client raises although it is not an exception
    :returns: the result; 0 if the client has failed for good
    """
    try:
        return call()
    except:  # noqa: E722 - nothing else takes what is no exception
        raised: object = sys.exc_info()[1]
        if isinstance(raised, KafkaError):
            problems.note(raised)
        elif not isinstance(raised, SystemError):
            # A SystemError remains if a callback was called after the error had been raised.
            raise
        return 0


NO_TOPIC: Final = frozenset({KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC})
"""The codes of errors about a topic that does not exist."""
TOO_LARGE: Final = frozenset({KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.INVALID_MSG_SIZE})
"""The codes of errors about a record, or several together, that is too large."""
FENCED: Final = frozenset({KafkaError._FENCED, KafkaError.INVALID_PRODUCER_EPOCH, KafkaError.PRODUCER_FENCED})
"""The codes of errors of a producer after which another one has begun with its transactional id."""
UNREACHABLE: Final = frozenset(
    {
        KafkaError._TRANSPORT,
        KafkaError._ALL_BROKERS_DOWN,
        KafkaError._RESOLVE,
        KafkaError._TIMED_OUT,
        KafkaError._TIMED_OUT_QUEUE,
        KafkaError._WAIT_COORD,
    }
)
"""The codes of errors in which no broker could be reached."""
