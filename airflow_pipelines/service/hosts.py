"""The service's view of hosts: their health, and calls that never hang on a dead one."""

from __future__ import annotations

import errno
import logging
import ssl
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, wait
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx
from sqlalchemy.exc import SQLAlchemyError
from tenacity import retry_if_exception_type

from airflow_pipelines.common.retries import RetryPolicy
from airflow_pipelines.contract.error_codes import ErrorCode
from airflow_pipelines.contract.problems import Problem
from airflow_pipelines.contract.registry import SHARED, HostRecord, Registry
from airflow_pipelines.service import errors, hang_watch, processes
from airflow_pipelines.service.hang_watch import HangWatch, Reply

logger = logging.getLogger(__name__)

CALL_TIMEOUT_S = 30.0
LOOK_S = 2.0
"""The number of seconds between two checks of a host that is slow to answer a call."""
UNSTARTED_LIMIT_S = 30.0
"""The number of seconds after which a host that nobody is starting was never started: its starter died."""
CLOSED = (httpx.ConnectError, httpx.ReadError, httpx.WriteError, httpx.CloseError, httpx.RemoteProtocolError)
"""The errors of a connection that was closed from the other side; a repeatable call is repeated."""
_NO_MEANS = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS, errno.EADDRNOTAVAIL})
"""The error numbers of a connection for which this process or its machine lacks a resource."""


class HostState(StrEnum):
    """The state of a host, as far as it is known now."""

    STARTING = "starting"
    UP = "up"
    LOST = "lost"


@dataclass(frozen=True, slots=True)
class HostHealth:
    """A host's state, and the reason why it is lost or the trouble of one that is up."""

    state: HostState
    reason: str = ""


@dataclass(frozen=True, slots=True)
class LogTail:
    """The last lines of a log, and its owner, as far as this machine can read it."""

    of: str
    lines: list[str]

    def __str__(self) -> str:
        return f"\nThe last lines of {self.of}:\n" + "\n".join(self.lines) if self.lines else ""


class HostUnreachable(Exception):
    """The error of a call that did not reach the host, or whose answer did not arrive."""


class HostTimeout(HostUnreachable):
    """The error of a host that did not answer in time; it may be at work."""


@cache
def tls_context() -> ssl.SSLContext:
    """Return the TLS context that clients of this process share, since reading certificates is the slowest part of creating one."""
    return httpx.create_ssl_context(trust_env=False)


class Hosts:
    """The hosts of a registry, with their health and calls over HTTP. Thread-safe."""

    def __init__(self, registry: Registry, heartbeat_timeout_s: float) -> None:
        self.registry = registry
        self._heartbeat_timeout_s = heartbeat_timeout_s
        # Proxies from the environment must not get between a service and its own hosts.
        self._http = httpx.Client(timeout=httpx.Timeout(CALL_TIMEOUT_S, connect=5.0), verify=tls_context(), trust_env=False)
        # Health checks must not depend on the connections that other calls leave free.
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=0)
        self._asking = httpx.Client(limits=limits, verify=tls_context(), trust_env=False)
        self._watch = HangWatch(registry, self._ask)
        self._closed = threading.Event()

    def close(self) -> None:
        """Close the connections."""
        self._closed.set()
        self._watch.close()
        self._http.close()
        self._asking.close()

    def health(self, host: HostRecord) -> HostHealth:
        """Return the health of a host: starting, up or lost. Quick; a host with a late heartbeat is asked in the background."""
        if host.ended_at is not None:
            return HostHealth(HostState.LOST, host.end_reason or "it was ended")
        here = host.machine == processes.this_machine()
        if here and host.pid is not None and not processes.is_alive(host.pid):
            # It may have recorded the reason after its row was read here.
            now = self.registry.get(host.host_id)
            said = None if now is None else now.end_reason
            return HostHealth(HostState.LOST, said or f"its process {host.pid} on {host.machine} is gone")
        if host.heartbeat is None or host.url is None:
            return self._starting(host)
        age = time.time() - host.heartbeat
        if age <= (min(self._heartbeat_timeout_s, hang_watch.SUSPECT_S) if here else self._heartbeat_timeout_s):
            self._watch.forget(host.host_id)
            return HostHealth(HostState.UP)
        verdict = self._watch.verdict(host)
        if verdict is None:
            return HostHealth(HostState.UP, f"it sent no heartbeat for {age:.0f} s and is being asked")
        return HostHealth(HostState.LOST, verdict)

    def look_after(self, host: HostRecord) -> HostHealth:
        """Return the health of a host, as :meth:`health` does, and end it if it was up and is lost: others take over from it."""
        health = self.health(host)
        if health.state is HostState.LOST and host.ended_at is None and host.heartbeat is not None:
            logger.warning("The %s host %s is lost and is ended: %s", host.kind, host.host_id, health.reason)
            self.end(host, health.reason)
        return health

    def is_gone(self, host: HostRecord) -> bool:
        """Return True if the host certainly runs nothing any more, ended or not: its process is gone, or it is entirely silent."""
        if host.machine == processes.this_machine() and host.pid is not None:
            if not processes.is_alive(host.pid):
                return True
            if processes.is_host(host.pid, host.host_id):
                return False
        if host.heartbeat is None:
            return host.ended_at is not None
        late = time.time() - host.heartbeat > self._heartbeat_timeout_s
        return late and self._ask(host, hang_watch.ASK_S) is Reply.SILENT

    def _ask(self, host: HostRecord, limit_s: float) -> Reply:
        """Ask a host for its health, over a separate connection."""
        if host.url is None:
            return Reply.NOT_ASKED
        url = host.url.rstrip("/") + "/health"
        try:
            answer = self._asking.get(url, headers=authorization(host), timeout=limit_s)
        except httpx.HTTPError as error:
            return Reply.NOT_ASKED if _lacks_means(error) else Reply.SILENT
        return Reply.ANSWERED if answer.is_success else Reply.SILENT

    def call(
        self, host: HostRecord, method: str, path: str, *, json: Any = None, timeout_s: float = CALL_TIMEOUT_S
    ) -> httpx.Response:
        """Make a call, which may arrive more than once: hosts accept every repeated call of the service without harm.

        :param host: the host
        :param method: HTTP method
        :param path: path on the host's data plane
        :param json: body as a JSON value
        :param timeout_s: seconds to wait for the answer
        :raises HostTimeout: when there is no answer in time
        :raises HostUnreachable: when the call does not get through. Any status counts as an answer
        """
        if host.url is None:
            raise HostUnreachable("it has not registered an address yet")
        attempts = RetryPolicy(first_wait_s=0.05, longest_wait_s=0.5, attempts=3).retrying(retry_if_exception_type(CLOSED))
        try:
            return attempts(
                self._http.request,
                method,
                host.url.rstrip("/") + path,
                json=json,
                headers=authorization(host),
                timeout=httpx.Timeout(timeout_s, connect=5.0),
            )
        except httpx.ReadTimeout as error:
            raise HostTimeout(f"{method} {path}: no answer within {timeout_s:g} s") from error
        except httpx.HTTPError as error:
            raise HostUnreachable(f"{method} {path}: {error or type(error).__name__}") from error

    def call_while_alive(
        self,
        host: HostRecord,
        method: str,
        path: str,
        *,
        json: Any = None,
        timeout_s: float,
        on_look: Callable[[], None] | None = None,
    ) -> httpx.Response:
        """Make a call and wait for its answer as long as the host lives, otherwise as :meth:`call`.

        :param host: the host
        :param method: HTTP method
        :param path: path on the host's data plane
        :param json: body as a JSON value
        :param timeout_s: seconds to wait for the answer of a host that lives
        :param on_look: a function to call each time the host was checked and is alive
        :raises HostTimeout: when the host lives and there is no answer in time
        :raises HostUnreachable: when the call does not get through, or the host is lost
        """
        answer: Future[httpx.Response] = Future()

        def ask() -> None:
            try:
                answer.set_result(self.call(host, method, path, json=json, timeout_s=timeout_s))
            except Exception as error:  # noqa: BLE001  it is raised to who waits
                answer.set_exception(error)

        # Nobody waits for this thread at the end of the process: the host may answer much later, or never.
        threading.Thread(target=ask, name=f"calling {host.host_id}", daemon=True).start()
        while not wait([answer], LOOK_S).done:
            try:
                newest = self.registry.get(host.host_id)
                health = HostHealth(HostState.LOST, "its row is gone from the store") if newest is None else self.look_after(newest)
                if health.state is not HostState.LOST and on_look is not None and not self._closed.is_set():
                    on_look()
            except SQLAlchemyError as error:
                logger.warning("The store does not say how host %s is: %s; it is waited for", host.host_id, type(error).__name__)
                continue
            # It may have answered just before it ended.
            if health.state is HostState.LOST and not wait([answer], 0.0).done:
                raise HostUnreachable(health.reason)
        return answer.result()

    def end(self, host: HostRecord, reason: str | None = None) -> None:
        """End a host as a whole: it exits when it finds its row ended, and is killed if it is on this machine.

        :param host: the host
        :param reason: the reason, if its pipelines should learn it
        """
        self.registry.end(host.host_id, reason)
        self._watch.forget(host.host_id)
        if host.pid is not None and host.machine == processes.this_machine():
            processes.kill_host(host.pid, host.host_id)

    def log_tail(self, host_id: UUID | None, own_log: Path) -> LogTail:
        """Return the last log lines that a pipeline may see: of its host's log if the host is its own, else of its own log.

        :param host_id: the pipeline's host
        :param own_log: the pipeline's log
        """
        host = None if host_id is None else self.registry.get(host_id)
        if host is None or host.kind == SHARED:
            return LogTail("the pipeline's log", processes.last_lines(own_log))
        return LogTail("the host's log", processes.last_lines(Path(host.log_path)))

    def age_s(self, host: HostRecord) -> float:
        """Return the number of seconds since the host was submitted."""
        submitted = host.submitted_at if host.submitted_at.tzinfo else host.submitted_at.replace(tzinfo=UTC)
        return (datetime.now(UTC) - submitted).total_seconds()

    def _starting(self, host: HostRecord) -> HostHealth:
        if host.pid is None and host.machine is None and self.age_s(host) > UNSTARTED_LIMIT_S:
            return HostHealth(HostState.LOST, "its process was never started")
        return HostHealth(HostState.STARTING)


def _lacks_means(error: BaseException | None) -> bool:
    """Return True if a call failed because this side lacked a resource, such as a file descriptor."""
    while error is not None:
        if isinstance(error, OSError) and error.errno in _NO_MEANS:
            return True
        error = error.__cause__ or error.__context__
    return False


def authorization(host: HostRecord) -> dict[str, str]:
    """Return the header that a host requires."""
    return {"Authorization": f"Bearer {host.token}"}


def raise_for_problem(response: httpx.Response) -> None:
    """Raise the error of an answer of the host as a whole.

    :param response: an answer to a call that is not about an incarnation of the host
    :raises HostUnreachable: when the host is about to end, so that another one has to do the work
    :raises Problem: when the answer is any other error
    """
    if response.is_success:
        return
    problem = problem_of(response)
    if problem.code is ErrorCode.TERMINATING:
        raise HostUnreachable(problem.message)
    raise problem


def problem_of(response: httpx.Response) -> Problem:
    """Return the Problem of a host's answer."""
    return errors.of_host(response.status_code, response.text)
