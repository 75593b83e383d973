"""The removal of what hosts leave behind, so that nothing grows without limit: their rows, their logs and their Spark folders."""

from __future__ import annotations

import logging
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from sqlalchemy import Engine, select
from sqlalchemy.exc import SQLAlchemyError

from airflow_pipelines.common.settings import Settings
from airflow_pipelines.contract.log_files import log_files
from airflow_pipelines.contract.registry import HostRecord, Registry
from airflow_pipelines.contract.store_address import withdraw
from airflow_pipelines.service import processes
from airflow_pipelines.service.store import PipelineRow

KEPT: Final = timedelta(days=7)
"""The time for which the row and the log of a host are kept after its end."""

logger = logging.getLogger(__name__)


class Housekeeping:
    """The clean-up after the hosts of one store."""

    def __init__(self, settings: Settings, engine: Engine) -> None:
        self._settings = settings
        self._engine = engine
        self._registry = Registry(engine)

    def tidy(self) -> None:
        """Remove the remains of hosts that have ended. A removal that fails is tried again the next time."""
        now = datetime.now(UTC)
        try:
            used = self._find_used_hosts()
            for host in self._registry.ended_before(now):
                old = host.ended_at is not None and _utc(host.ended_at) < now - KEPT
                self._tidy(host, old=old and host.host_id not in used)
        except (OSError, SQLAlchemyError) as error:
            logger.warning("What hosts left behind could not be removed: %s", error)

    def _tidy(self, host: HostRecord, *, old: bool) -> None:
        withdraw(self._settings, host.host_id)
        here = host.machine is None or host.machine == processes.this_machine()
        if here and (host.pid is None or not processes.is_alive(host.pid)):
            # A host that was killed could not do so itself.
            shutil.rmtree(spark_folder(self._settings, host.host_id), ignore_errors=True)
        if old:
            for log in log_files(Path(host.log_path)):
                log.unlink(missing_ok=True)
            self._registry.forget_host(host.host_id)

    def _find_used_hosts(self) -> set[object]:
        """Return the hosts that pipelines still refer to, ended or not."""
        with self._engine.connect() as connection:
            return set(connection.execute(select(PipelineRow.host_id)).scalars())


def spark_folder(settings: Settings, host_id: object) -> Path:
    """Return the folder for the temporary files of Spark on a host of this machine."""
    return settings.home / "spark" / str(host_id)


def _utc(moment: datetime) -> datetime:
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
