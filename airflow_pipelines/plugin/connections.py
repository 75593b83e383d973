"""Read-only access to the pipelines behind Airflow's connections.

A request names the id of a connection only; Airflow provides its address and key. A connection to the embedded service is read
without any of the service's actions: no program is compiled, no host is started.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from airflow.configuration import conf
from airflow.models.connection import Connection
from airflow.sdk import BaseHook
from airflow.sdk.exceptions import AirflowNotFoundException
from sqlalchemy import make_url, select

from airflow_pipelines.common.settings import PREFIX, Settings
from airflow_pipelines.hooks.connection import ServiceAddress
from airflow_pipelines.hooks.pipeline import PipelineHook
from airflow_pipelines.plugin.problems import PageProblem
from airflow_pipelines.sdk.client import AsyncPipelineClient
from airflow_pipelines.service.app import create_watching_app

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

FRESH_S: Final = 10.0
"""The seconds after which a connection is read again, so that a change of it is noticed."""
LAST_ANSWER_S: Final = 60.0
"""The seconds before a replaced client is closed; no request takes longer."""
_VARIABLE: Final = "AIRFLOW_CONN_"


@dataclass(slots=True)
class _Kept:
    """A client, its address, and the time of the last read of the address."""

    address: ServiceAddress
    client: AsyncPipelineClient
    read_at: float


class Connections:
    """The connections of type ``airflow_pipelines``, with one client for each. It belongs to one event loop."""

    def __init__(self) -> None:
        self._kept: dict[str, _Kept] = {}
        self._reading = asyncio.Lock()
        self._closing: set[asyncio.Task[None]] = set()

    async def client(self, conn_id: str) -> AsyncPipelineClient:
        """Return the client for a connection.

        :param conn_id: its id
        :raises PageProblem: when there is no such connection, or it cannot be used
        """
        kept = self._kept.get(conn_id)
        if kept is not None and time.monotonic() - kept.read_at < FRESH_S:
            return kept.client
        async with self._reading:
            address = await _read_address(conn_id)
            kept = self._kept.get(conn_id)
            if kept is None or kept.address != address:
                client = await asyncio.to_thread(_client, conn_id, address)
                if kept is not None:
                    self._close_later(kept.client)
                kept = self._kept[conn_id] = _Kept(address, client, 0.0)
            kept.read_at = time.monotonic()
        return kept.client

    def _close_later(self, client: AsyncPipelineClient) -> None:
        """Close a replaced client after its pending requests have been answered."""

        async def close() -> None:
            await asyncio.sleep(LAST_ANSWER_S)
            await client.close()

        task = asyncio.create_task(close())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    async def problem(self, conn_id: str) -> str | None:
        """Return the reason why a connection cannot be used, or None if it seems usable."""
        try:
            await self.client(conn_id)
        except PageProblem as problem:
            return problem.message
        return None


def connection_ids(session: Session) -> list[str]:
    """Return the ids of the connections through which pipelines can be seen, sorted.

    Secrets backends do not list their connections: those that exist only there are named in ``[airflow_pipelines]
    page_connections``. The default connection is included if something was started with it.

    :param session: a session of Airflow's database
    """
    stored = session.scalars(select(Connection.conn_id).where(Connection.conn_type == PipelineHook.conn_type))
    named = conf.get("airflow_pipelines", "page_connections", fallback="").split(",")
    ids = {*stored, *_find_in_environment(), *(name.strip() for name in named if name.strip())}
    if PipelineHook.default_conn_name not in ids and (_is_in_network(ServiceAddress()) or _has_store(Settings.load())):
        ids.add(PipelineHook.default_conn_name)
    return sorted(ids)


def _find_in_environment() -> Iterable[str]:
    for name in os.environ:
        if name.startswith(_VARIABLE):
            conn_id = name.removeprefix(_VARIABLE).lower()
            try:
                connection = BaseHook.get_connection(conn_id)
            except Exception:  # noqa: BLE001, S112  one that cannot be read may be of any type; who uses it is told why
                continue
            if connection.conn_type == PipelineHook.conn_type:
                yield conn_id


async def _read_address(conn_id: str) -> ServiceAddress:
    try:
        connection = await BaseHook.aget_connection(conn_id)
    except AirflowNotFoundException:
        if conn_id != PipelineHook.default_conn_name:
            raise _unknown(conn_id) from None
        return ServiceAddress()
    if connection.conn_type != PipelineHook.conn_type:
        # The existence of connections of other types is not revealed.
        raise _unknown(conn_id)
    try:
        return ServiceAddress.of(connection)
    except ValueError as error:
        raise PageProblem(502, "UnusableConnection", str(error)) from error


def _client(conn_id: str, address: ServiceAddress) -> AsyncPipelineClient:
    if _is_in_network(address):
        return AsyncPipelineClient(**address.client_arguments())
    settings = Settings.load(address.home, api_keys=())
    if not _has_store(settings):
        raise PageProblem(
            404, "NoStore", f"Nothing has been started with the connection '{conn_id}' yet on this machine: there is no store"
        )
    return AsyncPipelineClient(app=create_watching_app(settings))


def _is_in_network(address: ServiceAddress) -> bool:
    """Return True if a service is reached over the network, also if only the environment names it, as for tasks."""
    return bool(address.url or (not address.home and os.environ.get(f"{PREFIX}URL")))


def _has_store(settings: Settings) -> bool:
    """Return True if a store exists; the check must not create one."""
    url: Any = make_url(settings.database_url)
    return not url.drivername.startswith("sqlite") or Path(url.database or "").is_file()


def _unknown(conn_id: str) -> PageProblem:
    return PageProblem(404, "UnknownConnection", f"There is no connection '{conn_id}' of type {PipelineHook.conn_type}")
