"""The launch of a host, common to the shared and the dedicated deployer: writes its row and submits it."""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID

from sqlalchemy import Engine, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session
from uuid6 import uuid7

from airflow_pipelines.common.private_files import make_private_folder
from airflow_pipelines.common.settings import PREFIX, Settings
from airflow_pipelines.contract.deployment import Deployment
from airflow_pipelines.contract.registry import HostRecord, HostRow, Registry
from airflow_pipelines.contract.store_address import hand_over
from airflow_pipelines.service import processes
from airflow_pipelines.service.deployers.base import (
    SubmitError,
    SubmitRequest,
    SubmittedProcess,
    Submitter,
    loopback_conf,
    merged_conf,
)
from airflow_pipelines.service.housekeeping import Housekeeping, spark_folder

HOST_SCRIPT = Path(__file__).resolve().parents[2] / "host" / "submit.py"
"""The Python file that spark-submit runs."""


JVM_STACK = "4m"
"""The stack size of the threads of a host's JVM. With Java's default, Spark cannot parse a sum of five hundred terms."""


class Launcher:
    """A launcher of the hosts of one store."""

    def __init__(self, settings: Settings, engine: Engine, submitter: Submitter) -> None:
        self._settings = settings
        self._engine = engine
        self._registry = Registry(engine)
        self._submitter = submitter
        self._housekeeping = Housekeeping(settings, engine)

    def launch(
        self,
        kind: str,
        *,
        host_id: UUID | None = None,
        deployment: Deployment | None = None,
        master: str | None,
        conf: Mapping[str, str],
        defaults: Mapping[str, str] | None = None,
    ) -> None:
        """Submit a host. Launching the same host twice submits it only once.

        So does launching the shared host while the store has one.

        :param kind: ``shared`` or ``dedicated``
        :param host_id: the host's id; None for a new one
        :param deployment: the deployment that a dedicated host runs
        :param master: the Spark master, None if the submitter knows it
        :param conf: Spark properties
        :param defaults: Spark properties that a submitter's own take precedence over
        :raises SubmitError: when it cannot be submitted; the row is ended then, so that nobody waits for the host
        """
        host_id = host_id or uuid7()
        log_path = self._settings.logs / f"host-{host_id}.log"
        row = HostRecord(
            host_id=host_id,
            kind=kind,
            deployment_id=None if deployment is None else deployment.deployment_id,
            deployment=None if deployment is None else deployment.model_dump(mode="json"),
            url=None,
            token=secrets.token_urlsafe(32),
            # Until it runs, it counts as alive as long as this process, however long the start takes on a busy machine.
            pid=os.getpid(),
            machine=processes.this_machine(),
            log_path=str(log_path),
            submitted_at=datetime.now(UTC),
            heartbeat=None,
            ended_at=None,
        )
        try:
            self._registry.submit(row)
        except IntegrityError:
            # Another thread or process was quicker.
            return
        self._housekeeping.tidy()
        try:
            hand_over(self._settings, host_id)
            process = self._submitter.submit(self._request(row, master, conf, defaults or {}))
        except SubmitError as error:
            self._end_unstarted(host_id, str(error))
            raise
        except OSError as error:
            reason = f"{error.filename} cannot be made ({error.strerror or error})"
            self._end_unstarted(host_id, reason)
            raise SubmitError(reason) from error
        self._note_process(host_id, process)

    def _end_unstarted(self, host_id: UUID, reason: str) -> None:
        self._registry.update(host_id, pid=None, machine=None)
        self._registry.end(host_id, reason)

    def _request(
        self,
        row: HostRecord,
        master: str | None,
        conf: Mapping[str, str],
        defaults: Mapping[str, str],
    ) -> SubmitRequest:
        settings = self._settings
        return SubmitRequest(
            host_id=row.host_id,
            kind=row.kind,
            app_name=row.application_name,
            script=HOST_SCRIPT,
            arguments=("--host-id", str(row.host_id)),
            master=master,
            conf=merged_conf(loopback_conf(master), self._java_properties(row.host_id, master), conf),
            environment={
                f"{PREFIX}HOME": str(settings.home),
                f"{PREFIX}STORAGE": str(settings.storage),
                f"{PREFIX}SECRETS": str(settings.secrets),
                f"{PREFIX}HOST_ADDRESS": settings.host_address,
                f"{PREFIX}HOST_IDLE_S": str(settings.host_idle_s),
                f"{PREFIX}QUERY_TIMEOUT_S": str(settings.query_timeout_s),
                f"{PREFIX}QUERY_RESULT_BYTES": str(settings.query_result_bytes),
                f"{PREFIX}QUERY_CONCURRENCY": str(settings.query_concurrency),
                f"{PREFIX}SPARK_UI_PORT": str(settings.spark_ui_port or ""),
                f"{PREFIX}CONNECTOR_ENV": ",".join(settings.connector_env),
                f"{PREFIX}CONNECTOR_CONNECTIONS": ",".join(settings.connector_connections),
            },
            log_path=Path(row.log_path),
            defaults=defaults,
        )

    def _java_properties(self, host_id: UUID, master: str | None) -> dict[str, str]:
        """Return the Spark properties for the JVM of a host on this machine.

        Its temporary folders are in one of its own, which is removed after it, and its stack is large enough for deeply nested
        queries.
        """
        if master is None or not master.startswith("local"):
            return {}
        folder = spark_folder(self._settings, host_id)
        make_private_folder(folder.parent)
        make_private_folder(folder)
        options = f'-Xss{JVM_STACK} "-Djava.io.tmpdir={folder}"'
        return {"spark.local.dir": str(folder), "spark.driver.extraJavaOptions": options}

    def _note_process(self, host_id: UUID, process: SubmittedProcess) -> None:
        """Record the process until the host registers its own, so that a host that dies before that is noticed."""
        if process.pid is None and process.machine is None:
            # Started elsewhere by a submitter that does not know the process: it counts as started.
            process = SubmittedProcess(pid=None, machine="elsewhere")
        with Session(self._engine) as session, session.begin():
            statement = update(HostRow).where(HostRow.host_id == host_id, HostRow.heartbeat.is_(None))
            session.execute(statement.values(pid=process.pid, machine=process.machine or processes.this_machine()))
