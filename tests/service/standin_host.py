"""A host without Spark in a process of its own: its real heartbeat, its real data plane, and ways to make it hang.

``python -m tests.service.standin_host HOST_ID DATABASE_URL``; the host's row must be there. ``GET /gil`` takes Python's lock and
never gives it back, ``GET /loop`` keeps the data plane from answering, ``GET /beat`` ends the heartbeat and nothing else.
"""

from __future__ import annotations

import ctypes
import os
import socket
import sys
import threading
import time
from typing import Any
from uuid import UUID

from airflow_pipelines.common.database import DatabaseFile, open_database
from airflow_pipelines.contract.registry import Registry
from airflow_pipelines.host.api.app import create_app
from airflow_pipelines.host.process.heartbeat import Heartbeat
from airflow_pipelines.host.process.server import DataPlane
from airflow_pipelines.host.runs.fleet import Fleet

FOR_EVER_S = 600


def main(host_id: UUID, database_url: str) -> None:
    engine = open_database(database_url)
    registry = Registry(engine)
    record = registry.get(host_id)
    assert record is not None
    spark: Any = None
    app = create_app(Fleet(spark, registry), record.token, lambda: None, lambda: True)
    heartbeat = Heartbeat(host_id, registry, DatabaseFile(engine), every_s=1.0, grace_s=90.0)

    @app.get("/gil")
    async def gil() -> None:
        hold = ctypes.PyDLL(None).sleep
        threading.Timer(0.1, hold, (FOR_EVER_S,)).start()

    @app.get("/loop")
    async def loop() -> None:
        threading.Timer(0.1, plane_loop.call_soon_threadsafe, (time.sleep, FOR_EVER_S)).start()

    @app.get("/beat")
    async def beat() -> None:
        heartbeat.stop(0.0)

    @app.get("/ready")
    async def ready() -> None:
        nonlocal plane_loop
        import asyncio

        plane_loop = asyncio.get_running_loop()

    plane_loop: Any = None
    plane = DataPlane(app)
    plane.start()
    registry.update(host_id, url=plane.url, pid=os.getpid(), machine=socket.gethostname(), heartbeat=time.time())
    heartbeat.start(plane.answers)
    threading.Event().wait(FOR_EVER_S)


if __name__ == "__main__":
    main(UUID(sys.argv[1]), sys.argv[2])
