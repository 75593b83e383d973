"""The beginning of a host: reads what it is to be, starts Spark, and runs it."""

from __future__ import annotations

import argparse
import logging
import os
import sys
from collections.abc import Sequence
from uuid import UUID

from airflow_pipelines.contract.registry import HostRecord, Registry
from airflow_pipelines.database import DatabaseFile, open_database
from airflow_pipelines.engine.spark.application import log_no_java_calls
from airflow_pipelines.engine.spark.sessions import build_spark
from airflow_pipelines.host.process import Host
from airflow_pipelines.host.server import CannotListenError
from airflow_pipelines.host.store_address import database_url
from airflow_pipelines.pins import SetupError, check_spark_packages
from airflow_pipelines.private_files import PRIVATE_UMASK
from airflow_pipelines.settings import Settings

log = logging.getLogger("airflow_pipelines.host")


def main(arguments: Sequence[str]) -> int:
    """Run a host until it ends.

    :returns: the exit code
    """
    # For a host that a cluster started. Where it was started here, its JVM has this umask as well.
    os.umask(PRIVATE_UMASK)
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    log_no_java_calls()
    parser = argparse.ArgumentParser(prog="airflow_pipelines.host", description=__doc__)
    parser.add_argument("--host-id", type=UUID, required=True, help="the host's row in the store")
    host_id = parser.parse_args(arguments).host_id
    try:
        check_spark_packages()
        settings = Settings.load()
        engine = open_database(database_url(settings, host_id))
        registry = Registry(engine)
        record = registry.get(host_id)
        if record is None or record.ended_at is not None:
            log.error("the host %s is not wanted: its row is %s", host_id, "missing" if record is None else "ended")
            return 3
        return _run_host(record, registry, settings, DatabaseFile(engine))
    except SetupError as error:
        log.error("%s", error)  # noqa: TRY400  the message says it all
        return 2


def _run_host(record: HostRecord, registry: Registry, settings: Settings, store: DatabaseFile) -> int:
    # Nothing is kept in the warehouse, but Spark makes the folder, by default in whatever the working folder is.
    conf = {"spark.sql.warehouse.dir": str(settings.home / "spark-warehouse")}
    if settings.spark_ui_port:
        conf |= {"spark.ui.enabled": "true", "spark.ui.port": str(settings.spark_ui_port)}
    is_submitted = "PYSPARK_GATEWAY_PORT" in os.environ
    spark = build_spark(None if is_submitted else settings.master, record.application_name, conf)
    try:
        return Host(record, registry, settings, store).run(spark)
    except CannotListenError as error:
        log.error("%s", error)  # noqa: TRY400  the message says it all
        return 2
