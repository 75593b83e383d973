"""What goes wrong between a connector and Kafka: whether it may pass, and what to do about it."""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Callable
from typing import Any, Final

from confluent_kafka import KafkaError

from airflow_pipelines.connectors.base import ConnectorFailure, TransientConnectorFailure

logger = logging.getLogger(__name__)

_CREDENTIALS: Final = (
    "Check 'security.protocol', 'sasl.mechanism', 'sasl.username' and 'sasl.password' (or the certificates) of the connector"
)
_WHAT_TO_DO: Final = {
    KafkaError._AUTHENTICATION: _CREDENTIALS,
    KafkaError.SASL_AUTHENTICATION_FAILED: _CREDENTIALS,
    KafkaError.UNSUPPORTED_SASL_MECHANISM: _CREDENTIALS,
    KafkaError._SSL: _CREDENTIALS,
    KafkaError.TOPIC_AUTHORIZATION_FAILED: "Have the user of the connector be allowed to use the topic",
    KafkaError.GROUP_AUTHORIZATION_FAILED: "Have the user of the connector be allowed to use the group, or leave out 'group.id'",
    KafkaError.CLUSTER_AUTHORIZATION_FAILED: "Have the user of the connector be allowed to write in this cluster",
    KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: (
        "Have the user of the connector be allowed to use its 'transactional.id', or give \"transactions\": false"
    ),
}
"""By what cannot pass by itself."""


class Problems:
    """What the client of Kafka says of its connections, from threads of its own."""

    def __init__(self, where: str, servers: str) -> None:
        """Begin without any.

        :param where: the connector and its topic, for messages
        :param servers: the brokers, for messages
        """
        self._where = where
        self._servers = servers
        self._lock = threading.Lock()
        self._last: str | None = None
        self._down = False
        self._refused: KafkaError | None = None
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

    def healed(self) -> None:
        """Something came from a broker."""
        with self._lock:
            self._down, self._last = False, None

    @property
    def are_serious(self) -> bool:
        """Whether no broker can be reached, or one refuses to serve."""
        return self._down or self._refused is not None or self.fatal is not None

    def failure(self, error: KafkaError | None = None) -> ConnectorFailure:
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
            return TransientConnectorFailure(f"{self._where}: {self.fatal.str()}. The connector connects anew")
        if error is not None and error.code() not in _UNREACHABLE:
            return TransientConnectorFailure(f"{self._where}: {error.str()}")
        reason = f" ({last})" if last else ""
        return TransientConnectorFailure(
            f"{self._where}: no broker at {self._servers} answers{reason}. It is tried again; if that address is wrong, correct "
            "'bootstrap.servers' of the connector"
        )

    def _lasting(self, error: KafkaError) -> ConnectorFailure:
        return ConnectorFailure(f"{self._where}: {error.str()}. {_WHAT_TO_DO[error.code()]}.")


def served(call: Callable[[], int], problems: Problems) -> int:
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


_UNREACHABLE: Final = frozenset(
    {
        KafkaError._TRANSPORT,
        KafkaError._ALL_BROKERS_DOWN,
        KafkaError._RESOLVE,
        KafkaError._TIMED_OUT,
        KafkaError._TIMED_OUT_QUEUE,
        KafkaError._WAIT_COORD,
    }
)


def configuration(properties: dict[str, Any], problems: Problems, **own: Any) -> dict[str, Any]:
    """The configuration of a client.

    :param properties: those that the connector was declared with
    :param problems: is told what goes wrong
    :param own: what the connector sets itself, with underscores in place of dots
    """
    return {
        **properties,
        **{name.replace("_", "."): value for name, value in own.items()},
        "error_cb": problems.note,
        "logger": logger,
    }
