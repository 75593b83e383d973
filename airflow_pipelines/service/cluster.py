"""The health of the service's parts, and the events that record its changes."""

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
from airflow_pipelines.service.hosts import HostHealth, Hosts, HostState
from airflow_pipelines.service.records import Selector, rfc3339
from airflow_pipelines.service.store import UtcDateTime

EVENTS_KEPT: Final = 720


class ClusterEventRow(Base):
    """The row of a health event, with the state of all parts."""

    __tablename__ = "cluster_events"

    sequence: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=True)
    event_id: Mapped[UUID] = mapped_column(Uuid, unique=True)
    recorded_at: Mapped[datetime] = mapped_column(UtcDateTime)
    parts: Mapped[Any] = mapped_column(JSON)


@dataclass(frozen=True, slots=True)
class PartHealth:
    """The health of one part.

    :param healthy: True if it works, or will when it is needed
    :param message: a description of its state
    :param resources: the resources that it runs on; a change of them does not count as a change of its health
    """

    healthy: bool
    message: str
    resources: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class ClusterEvent:
    """A change of the health.

    :param event_id: its id
    :param recorded_at: the time at which the change was seen
    :param parts: the health of the parts from then on, by name
    """

    event_id: UUID
    recorded_at: datetime
    parts: Mapping[str, PartHealth]

    @property
    def all_healthy(self) -> bool:
        """True if every part is healthy."""
        return all(part.healthy for part in self.parts.values())

    def to_wire(self, selector: Selector) -> dict[str, Any]:
        """Return the event as the REST contract shows it.

        :param selector: ``ALL`` to include the messages
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
    """The health checks of one service, and the health events of a store. Thread-safe.

    :param engine: the store's database
    :param hosts: its hosts
    """

    def __init__(self, engine: Engine, hosts: Hosts) -> None:
        self._engine = engine
        self._hosts = hosts
        self._lock = threading.Lock()
        self._newest: ClusterEvent | None = None

    def look(self) -> ClusterEvent:
        """Check the parts now, and record an event if their health has changed.

        :returns: the newest event, which has the present health of the parts
        """
        live = self._hosts.registry.live_hosts()
        store = f"The store is a {self._engine.url.get_backend_name()} database"
        parts = {
            "api": PartHealth(True, "The service answers", store),
            "compiler": self._compiler([host for host in live if host.kind == SHARED]),
            "runner": PartHealth(True, "Hosts are started when needed", _describe_hosts(live)),
        }
        with self._lock:
            if self._newest is None:
                self._newest = next(iter(self.events(1)), None)
            if self._newest is None or self._newest.parts != parts:
                self._newest = self._record(parts)
            return self._newest

    def events(self, limit: int = EVENTS_KEPT) -> list[ClusterEvent]:
        """Return the newest events, the newest first."""
        statement = select(ClusterEventRow.__table__).order_by(ClusterEventRow.sequence.desc()).limit(limit)
        with self._engine.connect() as connection:
            return [_to_event(row) for row in connection.execute(statement).mappings()]

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
        """Return the health of the compiler: it works if a host is up, one is starting, or the next use starts one.

        It does not if the last host never came up: the next one will hardly do better.
        """
        newest = self._hosts.registry.newest_host(SHARED)
        # One that was ended without a reason was ended by a person.
        if newest is not None and newest.heartbeat is None and (newest.ended_at is None or newest.end_reason):
            health = self._hosts.health(newest)
            if health.state is HostState.LOST:
                reason = health.reason.strip().partition("\n")[0]
                message = f"The shared host did not come up ({reason}); the next use tries again"
                return PartHealth(False, message, _describe_hosts(hosts))
        return PartHealth(True, _describe_states([self._hosts.health(host) for host in hosts]), _describe_hosts(hosts))


def _describe_states(states: Sequence[HostHealth]) -> str:
    if any(health.state is HostState.UP for health in states):
        return "The shared host is up"
    lost = [health.reason for health in states if health.state is HostState.LOST]
    if lost and len(lost) == len(states):
        return f"The shared host was lost ({lost[0]}); the next use starts another"
    return "The shared host is starting" if states else "The shared host is started by its first use"


def _describe_hosts(hosts: Sequence[HostRecord]) -> str:
    """Describe the places where hosts run."""
    places = Counter((host.kind, host.machine) for host in hosts)
    texts = [f"{count} {kind} on {machine}" for (kind, machine), count in sorted(places.items(), key=str)]
    return f"Hosts: {', '.join(texts) or 'none'}"


def _to_event(row: Any) -> ClusterEvent:
    # Events from an earlier release have no resources.
    parts = {name: PartHealth(bool(values[0]), *map(str, values[1:])) for name, values in row["parts"].items()}
    return ClusterEvent(row["event_id"], row["recorded_at"], parts)
