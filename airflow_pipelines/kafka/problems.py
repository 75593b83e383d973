"""What goes wrong between a client and Kafka: whether it may pass, and what to do about it."""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Callable, Mapping
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
"""By what cannot pass by itself."""


class Problems(Generic[FailureT]):
    """What the client of Kafka says of its connections, from threads of its own."""

    def __init__(
        self, where: str, servers: str, whose: str, lasting: Callable[[str], FailureT], passing: Callable[[str], FailureT]
    ) -> None:
        """Begin without any.

        :param where: what uses the client, and its topic, for messages
        :param servers: the brokers, for messages
        :param whose: what has the options that may have to be corrected, for messages
        :param lasting: the failure that does not pass by itself
        :param passing: the failure that may
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
        """Why the client does nothing more; another one may."""

    def note(self, error: KafkaError) -> None:
        """Take what the client says (its ``error_cb``).

        :param error: about a broker, or all of them
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
        """Log what the client logs (its ``logger``).

        :param level: of the logging module
        :param text: with places for the arguments
        :param arguments: the values for them
        """
        if not self._is_abandoned:
            logger.log(level, text, *arguments)

    def abandon_client(self) -> None:
        """Log nothing more of the client: it cannot be closed while its brokers are away, and tries to reach them without end."""
        self._is_abandoned = True

    def healed(self) -> None:
        """Something came from a broker."""
        with self._lock:
            self._down, self._last = False, None

    @property
    def are_serious(self) -> bool:
        """Whether no broker can be reached, or one refuses to serve."""
        return self._down or self._refused is not None or self.fatal is not None

    @property
    def is_refused(self) -> bool:
        """Whether a broker refuses to serve, which does not pass by itself."""
        return self._refused is not None

    def failure(self, error: KafkaError | None = None) -> FailureT:
        """Why nothing comes or goes.

        :param error: what a call answered; None where only :meth:`note` knows
        """
        with self._lock:
            refused, last = self._refused, self._last
        if refused is not None:
            return self._lasting(refused)
        if error is not None and error.code() in _WHAT_TO_DO:
            return self._lasting(error)
        if self.fatal is not None:
            return self._new_passing(f"{self._where}: {self.fatal.str()}. {self._whose.capitalize()} connects anew")
        if error is not None and error.code() not in UNREACHABLE:
            return self._new_passing(f"{self._where}: {error.str()}")
        reason = f" ({last})" if last else ""
        return self._new_passing(
            f"{self._where}: no broker at {self._servers} answers{reason}. It is tried again; if that address is wrong, correct "
            f"'bootstrap.servers' of {self._whose}"
        )

    def _lasting(self, error: KafkaError) -> FailureT:
        what_to_do = _WHAT_TO_DO[error.code()].format(whose=self._whose)
        return self._new_lasting(f"{self._where}: {error.str()}. {what_to_do}.")


def served(call: Callable[[], int], problems: Problems[Any]) -> int:
    """What a call gives that lets a producer's client say what happened.

    :param call: such as its ``flush``
    :param problems: is told why the client does nothing more, which is raised as something that is no exception
    :returns: the answer; 0 when the client does nothing more
    """
    try:
        return call()
    except:  # noqa: E722 - nothing else takes what is no exception
        raised: object = sys.exc_info()[1]
        if isinstance(raised, KafkaError):
            problems.note(raised)
        elif not isinstance(raised, SystemError):
            # That is what is left of it when a callback was called after it had been raised.
            raise
        return 0


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
"""No broker could be asked."""


def configuration(properties: Mapping[str, Any], problems: Problems[Any], **own: Any) -> dict[str, Any]:
    """The configuration of a client.

    :param properties: those that were given
    :param problems: is told what goes wrong, and logs what the client does
    :param own: what is not up to these, with underscores in place of dots
    """
    return {
        **properties,
        **{name.replace("_", "."): value for name, value in own.items()},
        "error_cb": problems.note,
        "logger": problems,
    }
