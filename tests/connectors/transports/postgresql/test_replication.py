"""A connection for a server's log holds up no other thread while it is made."""

from __future__ import annotations

import socket
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest

from airflow_pipelines.connectors.base import ConnectorFailure
from airflow_pipelines.connectors.transports.postgresql.options import ConnectionOptions
from airflow_pipelines.connectors.transports.postgresql.replication import ReplicationConnection
from airflow_pipelines.connectors.transports.postgresql.sessions import Sessions

TRIED_S = 20


@pytest.mark.core
@pytest.mark.processes
@pytest.mark.parametrize("connect", [ReplicationConnection, Sessions.connect], ids=["for the log", "for statements"])
def test_other_threads_go_on_until_the_server_answers(connect: Callable[[Sessions], Any]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, ThreadPoolExecutor(1) as threads:
        server.settimeout(2 * TRIED_S)
        address = f"127.0.0.1:{server.getsockname()[1]}"
        uri = f"postgresql://me@{address}/shop?sslmode=disable&gssencmode=disable&connect_timeout={TRIED_S}"
        connecting = threads.submit(connect, Sessions("x", ConnectionOptions(uri=uri)))
        # This thread is the server. One that was held up could not answer before the time for connecting is over.
        connection, _ = server.accept()
        with connection:
            assert connection.recv(1024)
        with pytest.raises((psycopg.OperationalError, ConnectorFailure), match="server closed the connection"):
            connecting.result(2 * TRIED_S)
