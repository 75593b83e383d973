"""The interface between the service and the components that start hosts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol
from uuid import UUID

from airflow_pipelines.contract.deployment import Deployment
from airflow_pipelines.contract.registry import HostRecord


@dataclass(frozen=True, slots=True)
class SubmitRequest:
    """A spark-submit of a host.

    :param kind: ``shared`` or ``dedicated``
    :param script: the Python file that Spark runs
    :param arguments: the script's arguments
    :param master: the Spark master; None leaves it to the submitter
    :param conf: Spark properties
    :param defaults: Spark properties that a submitter's own take precedence over
    :param environment: the settings for the host; nothing in it is secret
    :param log_path: the file that takes the host's output
    """

    host_id: UUID
    kind: str
    app_name: str
    script: Path
    arguments: tuple[str, ...]
    master: str | None
    conf: Mapping[str, str]
    environment: Mapping[str, str]
    log_path: Path
    defaults: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SubmittedProcess:
    """The process that a submitter started and its machine, as far as they are known."""

    pid: int | None = None
    machine: str | None = None


class SubmitError(Exception):
    """The error of a host that could not be submitted. The message gives the reason and says what to do."""


class Submitter(Protocol):
    """A component that starts a host so that it outlives this process, and returns at once.

    A host that cannot be killed from here ends by itself when its row in the registry is ended.
    """

    def submit(self, request: SubmitRequest) -> SubmittedProcess:
        """Start the host.

        :raises SubmitError: when it cannot be started
        """
        ...


@dataclass(frozen=True, slots=True)
class DedicatedHosts:
    """A custom way to submit dedicated hosts.

    :param name: its name in the store, so that only services that know it deploy with it: it should include the connection that it
        uses
    :param submitter: the component that starts the hosts
    :param master: the Spark master, or None if the submitter knows it
    """

    name: str
    submitter: Submitter
    master: str | None = None


class Deployer(Protocol):
    """A component that places incarnations on hosts.

    Every method is idempotent, since another process may call it again after a crash.
    """

    def place(self) -> UUID | None:
        """Return the host for a new incarnation, or None while it is not up yet.

        :raises SubmitError: when there will be none
        """
        ...

    def deploy(self, host_id: UUID, deployment: Deployment) -> None:
        """Start the incarnation on its host.

        :param host_id: the host, as :meth:`place` returned it
        :param deployment: the incarnation
        :raises SubmitError: when the host cannot be started
        :raises Problem: when the host refuses
        """
        ...

    def take_down(self, host: HostRecord, deployment_id: UUID) -> bool:
        """End the incarnation at once.

        :returns: True if it is certainly gone, False if the call has to be repeated
        """
        ...

    def release(self, host: HostRecord, deployment_id: UUID) -> bool:
        """Clean up after an incarnation that suspended itself.

        :returns: True if it is certainly gone, False if the call has to be repeated
        """
        ...


@dataclass(frozen=True, slots=True)
class Deployers:
    """The deployers that a service can use, by name, and the default for new incarnations.

    The name is stored with a start, so that another service process leaves an incarnation alone that it cannot deploy.
    """

    by_name: Mapping[str, Deployer]
    default: str

    def get(self, name: str | None) -> Deployer | None:
        """Return the deployer called ``name``, or None if this process has none."""
        return None if name is None else self.by_name.get(name)

    def of_kind(self, kind: str) -> Deployer:
        """Return a deployer that can take down incarnations on a host of ``kind``, whoever deployed them."""
        return self.by_name.get(kind) or self.by_name[self.default]


_OPTIONS_OF_JAVA = ("spark.driver.extraJavaOptions", "spark.executor.extraJavaOptions")


def merged_conf(*layers: Mapping[str, str]) -> dict[str, str]:
    """Merge layers of Spark properties; later ones take precedence, and options of the JVM are concatenated.

    :param layers: the properties, in ascending precedence
    """
    merged: dict[str, str] = {}
    for layer in layers:
        for name, value in layer.items():
            merged[name] = f"{merged[name]} {value}" if name in _OPTIONS_OF_JAVA and name in merged else value
    return merged


def loopback_conf(master: str | None) -> dict[str, str]:
    """Return Spark properties that bind the driver of a local master to loopback; no other program has to find it.

    By default it listens on the machine's address, and accepts calls of everybody.
    """
    if master is None or not re.fullmatch(r"local(\[.*\])?", master):
        return {}
    return {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}
