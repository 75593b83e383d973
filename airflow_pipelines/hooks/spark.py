"""The submission of dedicated hosts with a Spark connection of Airflow.

The provider's hook turns a Spark connection into a spark-submit command. In client mode its ``submit`` stays for the life of a
driver and dies with the task, so only its command is used and the process is started separately. In cluster mode ``submit`` returns
once the cluster has accepted the application, if it is told to track the application through the cluster's own API.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook
from airflow.sdk.exceptions import AirflowException

from airflow_pipelines.common.private_files import PRIVATE_UMASK, make_private_folder, private_opener
from airflow_pipelines.service import processes
from airflow_pipelines.service.deployers.base import (
    DedicatedHosts,
    SubmitError,
    SubmitRequest,
    SubmittedProcess,
    loopback_conf,
    merged_conf,
)
from airflow_pipelines.service.deployers.submit import spark_home, submit_environment

if TYPE_CHECKING:
    from airflow.sdk import Connection


_EXTRAS: Final = {
    "image": "spark.kubernetes.container.image",
    "driver_memory": "spark.driver.memory",
    "executor_memory": "spark.executor.memory",
    "cores_max": "spark.cores.max",
}
"""The extras of a Spark connection that set one property each."""


class HostSubmitHook(SparkSubmitHook):
    """The provider's hook over a connection that was read already, for places where reading one would block.

    :param connection: the Spark connection
    :param options: the options of SparkSubmitHook
    """

    def __init__(self, connection: Connection, **options: Any) -> None:
        self._given = connection
        super().__init__(conn_id=connection.conn_id, **options)

    def get_connection(self, conn_id: str) -> Connection:  # type: ignore[override]
        """Return the connection that this hook was made with."""
        return self._given

    @property
    def master(self) -> str:
        """The Spark master."""
        return str(self._connection["master"])

    @property
    def is_cluster_mode(self) -> bool:
        """True if the driver runs in the cluster."""
        return bool(self._connection["deploy_mode"] == "cluster")

    def command(self, application: str) -> list[str]:
        """Return the spark-submit command for an application.

        This environment's own spark-submit is preferred to others on the path.

        :param application: path of the Python file to run
        :raises SubmitError: if there is no such program on the path
        """
        command: list[str] = self._build_spark_submit_command(application)
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
        binary = shutil.which(command[0], path=path)
        if binary is None:
            raise SubmitError(
                f"Spark connection {self._given.conn_id!r} wants {command[0]!r}, which is not on the path of this worker"
            )
        return [binary, *command[1:]]


class SparkConnectionSubmitter:
    """A submitter that starts hosts with a Spark connection.

    The connection's master, deploy mode, queue, binary, namespace and Kerberos settings are honoured.

    :param connection: the Spark connection
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def submit(self, request: SubmitRequest) -> SubmittedProcess:
        """Start a host that outlives this process.

        :param request: the host to start
        :returns: the process on this machine, empty if the driver runs in a cluster
        :raises SubmitError: if it could not be started; the message says why
        """
        try:
            options = _hook_options(request, connection_conf(self._connection))
            if HostSubmitHook(self._connection, **options).is_cluster_mode:
                return self._submit_to_cluster(request, options)
            options["conf"] = {**loopback_conf(HostSubmitHook(self._connection, **options).master), **options["conf"]}
            return self._submit_here(request, HostSubmitHook(self._connection, **options))
        except (AirflowException, ValueError, RuntimeError, NameError, OSError) as error:
            raise SubmitError(f"Spark connection {self._connection.conn_id!r}: {error}") from error

    def _submit_here(self, request: SubmitRequest, hook: HostSubmitHook) -> SubmittedProcess:
        """Start the driver on this machine, in a session of its own, with its output in the host's log."""
        command = hook.command(str(request.script))
        environment = submit_environment(request, spark_home())
        if Path(command[0]).parent != Path(sys.executable).parent:
            # Another Spark's binary must find its own home.
            environment.pop("SPARK_HOME")
            if "SPARK_HOME" in os.environ:
                environment["SPARK_HOME"] = os.environ["SPARK_HOME"]
        make_private_folder(request.log_path.parent)
        with open(request.log_path, "ab", opener=private_opener) as log:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=environment,
                cwd=request.log_path.parent,
                start_new_session=True,
                umask=PRIVATE_UMASK,
            )
        threading.Thread(target=process.wait, name=f"reaper-{process.pid}", daemon=True).start()
        return SubmittedProcess(pid=process.pid, machine=processes.this_machine())

    def _submit_to_cluster(self, request: SubmitRequest, options: dict[str, Any]) -> SubmittedProcess:
        """Submit the driver to the cluster, and wait until the cluster accepts it."""
        master = HostSubmitHook(self._connection, **options).master
        prefix, tracking = _cluster_kind(master)
        with _properties_file({f"{prefix}.{name}": value for name, value in request.environment.items()}) as path:
            hook = HostSubmitHook(self._connection, **options, **{tracking: True}, properties_file=path)
            hook.submit(str(request.script))
        return SubmittedProcess()


_known: dict[str, tuple[str, DedicatedHosts]] = {}


def dedicated_hosts(connection: Connection) -> DedicatedHosts:
    """Return the deployer that submits dedicated hosts with a Spark connection; the same object for the same connection.

    :param connection: the Spark connection. Its id is stored with what is started, so that only services that have it deploy with
        it.
    """
    # A process has one embedded service for each deployer, so a new object each time would be a new service each time.
    uri = connection.get_uri()
    known = _known.get(connection.conn_id)
    if known is None or known[0] != uri:
        hosts = DedicatedHosts(name=f"dedicated:{connection.conn_id}", submitter=SparkConnectionSubmitter(connection))
        _known[connection.conn_id] = known = (uri, hosts)
    return known[1]


def connection_conf(connection: Connection) -> dict[str, str]:
    """Return the Spark properties that a Spark connection sets, for all pipelines whose hosts are submitted with it.

    Properties in a pipeline's own configuration take precedence.

    :param connection: its extras ``conf`` (an object of properties), ``packages`` (a list, or a text with commas), ``image``,
        ``driver_memory``, ``executor_memory`` and ``cores_max``
    :raises ValueError: if an extra has an invalid value
    """
    extra = connection.extra_dejson
    given = extra.get("conf") or {}
    if not isinstance(given, Mapping) or not all(str(name).startswith("spark.") for name in given):
        raise ValueError('its extra \'conf\' has to be an object of Spark properties, such as {"spark.executor.memory": "4g"}')
    packages = extra.get("packages")
    named = {property_: extra.get(name) for name, property_ in _EXTRAS.items()}
    named["spark.jars.packages"] = ",".join(packages) if isinstance(packages, list) else packages
    wrong = [name for name, value in {**given, **named}.items() if value and not isinstance(value, (str, int, float, bool))]
    if wrong:
        raise ValueError(f"its extras have no text for {', '.join(sorted(wrong))}")
    return {name: _format_property(value) for name, value in {**given, **named}.items() if value is not None}


def _format_property(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _hook_options(request: SubmitRequest, own: Mapping[str, str]) -> dict[str, Any]:
    conf = merged_conf(request.defaults, own, request.conf)
    return {"conf": conf, "name": request.app_name, "application_args": list(request.arguments)}


def _cluster_kind(master: str) -> tuple[str, str]:
    """Return a cluster's property prefix for environment variables, and the hook's flag for ``submit`` to return on acceptance."""
    if master.startswith("yarn"):
        return "spark.yarn.appMasterEnv", "yarn_track_via_rm_api"
    if master.startswith("k8s"):
        return "spark.kubernetes.driverEnv", "track_driver_via_k8s_api"
    raise SubmitError(
        f"master {master} runs no Python driver in cluster mode: use deploy mode client, or a YARN or Kubernetes cluster"
    )


@contextmanager
def _properties_file(properties: Mapping[str, str]) -> Iterator[str]:
    """Yield the path of a file of Spark properties that only this user can read, so that they never show on a command line."""
    # The file is readable by its owner only, and deleted after spark-submit has read it.
    with tempfile.NamedTemporaryFile("w", prefix="airflow-pipelines-", suffix=".conf") as file:
        for name, value in properties.items():
            escaped = value.replace("\\", "\\\\").replace("\n", "\\n")
            file.write(f"{name}={escaped}\n")
        file.flush()
        yield file.name
