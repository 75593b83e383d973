"""The health of the service's parts, and the events by which it changed."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final
from uuid import UUID

from sqlalchemy import JSON, Engine, Integer, Uuid, delete, insert, select
from sqlalchemy.orm import Mapped, Session, mapped_column
from uuid6 import uuid7

from airflow_pipelines.contract.registry import SHARED, Base, HostRecord
from airflow_pipelines.service.hosts import Health, Hosts, HostState
from airflow_pipelines.service.records import Selector, rfc3339
from airflow_pipelines.service.store import UtcDateTime

EVENTS_KEPT: Final = 720


class ClusterEventRow(Base):
    """How the parts were at one change of any of them."""

    __tablename__ = "cluster_events"

    sequence: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=True)
    event_id: Mapped[UUID] = mapped_column(Uuid, unique=True)
    recorded_at: Mapped[datetime] = mapped_column(UtcDateTime)
    parts: Mapped[Any] = mapped_column(JSON)


@dataclass(frozen=True, slots=True)
class PartHealth:
    """How one part is.

    :param healthy: whether it does its work, or will when it is asked to
    :param message: what there is to say of it
    :param resources: what it runs on; to run on something else is no change of its health
    """

    healthy: bool
    message: str
    resources: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class ClusterEvent:
    """A change of the health.

    :param event_id: its identity
    :param recorded_at: when the change was seen
    :param parts: how the parts were from then on, by name
    """

    event_id: UUID
    recorded_at: datetime
    parts: Mapping[str, PartHealth]

    @property
    def all_healthy(self) -> bool:
        """Whether every part is healthy."""
        return all(part.healthy for part in self.parts.values())

    def to_wire(self, selector: Selector) -> dict[str, Any]:
        """The event as the REST contract shows it.

        :param selector: ``ALL`` for the messages beside the statuses
        """
        wire: dict[str, Any] = {
            "id": str(self.event_id),
            "recorded_at": rfc3339(self.recorded_at),
            "all_healthy": self.all_healthy,
        }
        for name, part in self.parts.items():
            wire[f"{name}_status"] = "Healthy" if part.healthy else "Unhealthy"
            if selector is Selector.ALL:
                wire[f"{name}_self_info"] = part.message
                wire[f"{name}_resources_info"] = part.resources
        return wire


class ClusterHealth:
    """Looks at the parts of one service, and keeps the events of a store. Thread-safe.

    :param engine: the store's database
    :param hosts: its hosts
    """

    def __init__(self, engine: Engine, hosts: Hosts) -> None:
        self._engine = engine
        self._hosts = hosts
        self._lock = threading.Lock()
        self._newest: ClusterEvent | None = None

    def look(self) -> ClusterEvent:
        """Look at the parts now, and record an event when they have changed.

        :returns: the newest event, which says how the parts are
        """
        live = self._hosts.registry.live_hosts()
        store = f"The store is a {self._engine.url.get_backend_name()} database"
        parts = {
            "api": PartHealth(True, "The service answers", store),
            "compiler": self._compiler([host for host in live if host.kind == SHARED]),
            "runner": PartHealth(True, "Hosts are started when needed", _described(live)),
        }
        with self._lock:
            if self._newest is None:
                self._newest = next(iter(self.events(1)), None)
            if self._newest is None or self._newest.parts != parts:
                self._newest = self._record(parts)
            return self._newest

    def events(self, limit: int = EVENTS_KEPT) -> list[ClusterEvent]:
        """The newest events, the newest first."""
        statement = select(ClusterEventRow.__table__).order_by(ClusterEventRow.sequence.desc()).limit(limit)
        with self._engine.connect() as connection:
            return [_event(row) for row in connection.execute(statement).mappings()]

    def _record(self, parts: Mapping[str, PartHealth]) -> ClusterEvent:
        event = ClusterEvent(UUID(int=uuid7().int), datetime.now(UTC), parts)
        stored = {name: [part.healthy, part.message, part.resources] for name, part in parts.items()}
        with Session(self._engine) as session, session.begin():
            values = {"event_id": event.event_id, "recorded_at": event.recorded_at, "parts": stored}
            session.execute(insert(ClusterEventRow).values(values))
            newest = select(ClusterEventRow.sequence).order_by(ClusterEventRow.sequence.desc())
            oldest_kept = newest.offset(EVENTS_KEPT - 1).limit(1).scalar_subquery()
            session.execute(delete(ClusterEventRow).where(ClusterEventRow.sequence < oldest_kept))
        return event

    def _compiler(self, hosts: Sequence[HostRecord]) -> PartHealth:
        """Healthy means that compiling works or will: a host is up, one is starting, or none was needed yet."""
        return PartHealth(True, self._compiler_message([self._hosts.health(host) for host in hosts]), _described(hosts))

    def _compiler_message(self, states: Sequence[Health]) -> str:
        if any(health.state is HostState.UP for health in states):
            return "The shared host is up"
        lost = [health.reason for health in states if health.state is HostState.LOST]
        if lost and len(lost) == len(states):
            return f"The shared host was lost ({lost[0]}); the next use starts another"
        return "The shared host is starting" if states else "The shared host is started by its first use"


def _described(hosts: Sequence[HostRecord]) -> str:
    """The places where hosts run."""
    places = Counter((host.kind, host.machine) for host in hosts)
    texts = [f"{count} {kind} on {machine}" for (kind, machine), count in sorted(places.items(), key=str)]
    return f"Hosts: {', '.join(texts) or 'none'}"


def _event(row: Any) -> ClusterEvent:
    # Those that an earlier release recorded do not say what a part ran on.
    parts = {name: PartHealth(bool(values[0]), *map(str, values[1:])) for name, values in row["parts"].items()}
    return ClusterEvent(row["event_id"], row["recorded_at"], parts)
