"""The interface between the service and whatever starts hosts."""

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
    """One spark-submit of a host.

    :param kind: ``shared`` or ``dedicated``
    :param script: the Python file that Spark runs
    :param arguments: the script's arguments
    :param master: the Spark master; None leaves it to the submitter
    :param conf: Spark properties
    :param defaults: Spark properties that give way to those of a submitter's own
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
    """What a submitter knows about what it started: the process and its machine, when they are known at all."""

    pid: int | None = None
    machine: str | None = None


class SubmitError(Exception):
    """A host could not be submitted; the message says why and what to do."""


class Submitter(Protocol):
    """Starts a host so that it outlives this process, and returns at once.

    A host that cannot be killed from here ends by itself when its row in the registry is ended.
    """

    def submit(self, request: SubmitRequest) -> SubmittedProcess:
        """Start the host.

        :raises SubmitError: when it cannot be started
        """
        ...


@dataclass(frozen=True, slots=True)
class DedicatedHosts:
    """A way of one's own to submit dedicated hosts.

    :param name: stands for it in the store, so that only services which know it deploy with it: let it say the connection it uses
    :param submitter: starts the hosts
    :param master: the Spark master, or None when the submitter knows it
    """

    name: str
    submitter: Submitter
    master: str | None = None


class Deployer(Protocol):
    """Places incarnations on hosts. Every method may be called again by another process after a crash, so each is idempotent."""

    def place(self) -> UUID | None:
        """The host for a new incarnation, or None while it is not there yet.

        :raises SubmitError: when there will be none
        """
        ...

    def deploy(self, host_id: UUID, deployment: Deployment) -> None:
        """Start the incarnation on its host.

        :param host_id: the host, as :meth:`place` gave it
        :param deployment: the incarnation
        :raises SubmitError: when the host cannot be started
        :raises Problem: when the host refuses
        """
        ...

    def take_down(self, host: HostRecord, deployment_id: UUID) -> bool:
        """End the incarnation at once; True when it is certainly gone, False to be asked again."""
        ...

    def release(self, host: HostRecord, deployment_id: UUID) -> bool:
        """Clean up after an incarnation that suspended itself; True when it is certainly gone, False to be asked again."""
        ...


@dataclass(frozen=True, slots=True)
class Deployers:
    """The deployers a service can use, by name, and the one that new incarnations get.

    The name is stored with a start, so that another service process leaves an incarnation alone that it cannot deploy.
    """

    by_name: Mapping[str, Deployer]
    default: str

    def get(self, name: str | None) -> Deployer | None:
        """The deployer called ``name``, or None when this process has none."""
        return None if name is None else self.by_name.get(name)

    def of_kind(self, kind: str) -> Deployer:
        """A deployer that can take down what runs on a host of ``kind``, whoever deployed it."""
        return self.by_name.get(kind) or self.by_name[self.default]


_OPTIONS_OF_JAVA = ("spark.driver.extraJavaOptions", "spark.executor.extraJavaOptions")


def merged_conf(*layers: Mapping[str, str]) -> dict[str, str]:
    """Spark properties of several layers, of which later ones win; options of the JVM add up.

    :param layers: the properties, the weakest first
    """
    merged: dict[str, str] = {}
    for layer in layers:
        for name, value in layer.items():
            merged[name] = f"{merged[name]} {value}" if name in _OPTIONS_OF_JAVA and name in merged else value
    return merged


def loopback_conf(master: str | None) -> dict[str, str]:
    """Spark properties that keep the driver of a local master from the network; no other program has to find it.

    By default it listens on the machine's address, and takes calls of everybody.
    """
    if master is None or not re.fullmatch(r"local(\[.*\])?", master):
        return {}
    return {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}
