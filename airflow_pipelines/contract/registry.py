"""The part of the store that hosts write: the live hosts, the incarnation that each runs, and its status.

Hosts and the service meet only here and over HTTP. Rows of ``hosts`` carry an unguessable token; it is never logged or shown.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from sqlalchemy import JSON, DateTime, Engine, Float, Index, Integer, MetaData, String, Uuid, delete, select, update
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

from airflow_pipelines.contract.deployment import RuntimeTransition
from airflow_pipelines.contract.statuses import RuntimeStatus


class Base(DeclarativeBase):
    """The base of the tables that hosts and the service share; the service's own tables use the same metadata."""

    metadata = MetaData()


SHARED = "shared"
"""The kind of the host that the pipelines of a store share."""
MAX_REASON = 1024
"""The maximum length of the reason for the end of a host."""


class HostRow(Base):
    """A Spark application.

    :param kind: ``shared`` or ``dedicated``
    :param deployment_id: the deployment of a dedicated host
    """

    __tablename__ = "hosts"
    # The database sees to it that a store has one shared host, whoever asks for it at the same time.
    __table_args__ = (Index("hosts_slot", "slot", unique=True),)

    host_id: Mapped[UUID] = mapped_column(Uuid, primary_key=True)
    kind: Mapped[str] = mapped_column(String(16))
    deployment_id: Mapped[UUID | None] = mapped_column(Uuid, nullable=True)
    deployment: Mapped[Any] = mapped_column(JSON, nullable=True)
    """The Deployment of a dedicated host, which it starts by itself once it is up."""
    url: Mapped[str | None] = mapped_column(String(255), nullable=True)
    token: Mapped[str] = mapped_column(String(128))
    pid: Mapped[int | None] = mapped_column(Integer, nullable=True)
    machine: Mapped[str | None] = mapped_column(String(255), nullable=True)
    log_path: Mapped[str] = mapped_column(String(1024))
    submitted_at: Mapped[datetime] = mapped_column(DateTime(timezone=True))
    heartbeat: Mapped[float | None] = mapped_column(Float, nullable=True)
    """The time of the last heartbeat, in seconds since the epoch by the host's clock; None until the host has registered."""
    ended_at: Mapped[datetime | None] = mapped_column(DateTime(timezone=True), nullable=True)
    end_reason: Mapped[str | None] = mapped_column(String(MAX_REASON), nullable=True)
    """The reason why the host ended, if it could record one itself."""
    slot: Mapped[str | None] = mapped_column(String(16), nullable=True)
    """``shared`` for the store's shared host until it is ended; None for all others, whose number is not limited."""


class TransitionRow(Base):
    """A runtime transition; ``sequence`` orders all transitions of a store."""

    __tablename__ = "runtime_transitions"

    sequence: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=True)
    deployment_id: Mapped[UUID] = mapped_column(Uuid, index=True)
    status: Mapped[str] = mapped_column(String(32))
    desired: Mapped[str] = mapped_column(String(32))
    details: Mapped[Any] = mapped_column(JSON, nullable=True)
    error: Mapped[Any] = mapped_column(JSON, nullable=True)
    checkpoints: Mapped[Any] = mapped_column(JSON, nullable=True)
    last_sync: Mapped[Any] = mapped_column(JSON, nullable=True)
    recorded_at: Mapped[datetime] = mapped_column(DateTime(timezone=True))


@dataclass(frozen=True, slots=True)
class HostRecord:
    """A host as recorded in the registry."""

    host_id: UUID
    kind: str
    deployment_id: UUID | None
    deployment: dict[str, Any] | None = field(repr=False)
    url: str | None
    token: str = field(repr=False)
    pid: int | None
    machine: str | None
    log_path: str
    submitted_at: datetime
    heartbeat: float | None
    ended_at: datetime | None
    end_reason: str | None = None

    @property
    def application_name(self) -> str:
        """The host's application name in Spark: a dedicated host is named after its pipeline."""
        return f"airflow-pipelines {'shared host' if self.deployment is None else self.deployment['pipeline_name']}"


class Registry:
    """Reads and writes of the hosts' tables over one SQLAlchemy engine."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def submit(self, host: HostRecord) -> None:
        """Write a host's row before the host is started, so that no host can exist without a row.

        :raises sqlalchemy.exc.IntegrityError: when the row exists already, or the store has a shared host and this is another
        """
        with Session(self._engine) as session, session.begin():
            session.add(
                HostRow(
                    host_id=host.host_id,
                    kind=host.kind,
                    deployment_id=host.deployment_id,
                    deployment=host.deployment,
                    url=host.url,
                    token=host.token,
                    pid=host.pid,
                    machine=host.machine,
                    log_path=host.log_path,
                    submitted_at=host.submitted_at,
                    heartbeat=host.heartbeat,
                    slot=SHARED if host.kind == SHARED else None,
                )
            )

    def update(self, host_id: UUID, **values: Any) -> bool:
        """Set columns of a host's row; return False if the row is gone or the host was declared ended."""
        with Session(self._engine) as session, session.begin():
            statement = update(HostRow).where(HostRow.host_id == host_id, HostRow.ended_at.is_(None)).values(**values)
            return bool(session.connection().execute(statement).rowcount)

    def end(self, host_id: UUID, reason: str | None = None) -> None:
        """Declare a host ended: it must not run anything from now on.

        :param reason: the reason, if its pipelines should learn it; a long one, such as one with lines of a log, is cut
        """
        kept = None if reason is None else reason[:MAX_REASON]
        self.update(host_id, ended_at=datetime.now(UTC), end_reason=kept, slot=None)

    def live_hosts(self, kind: str | None = None) -> list[HostRecord]:
        """Return the hosts that are not declared ended, newest first."""
        statement = select(HostRow).where(HostRow.ended_at.is_(None)).order_by(HostRow.submitted_at.desc())
        if kind is not None:
            statement = statement.where(HostRow.kind == kind)
        with Session(self._engine) as session:
            return [_record(row) for row in session.scalars(statement)]

    def newest_host(self, kind: str) -> HostRecord | None:
        """Return the host of a kind that was submitted last, ended or not; None if there is none."""
        statement = select(HostRow).where(HostRow.kind == kind).order_by(HostRow.submitted_at.desc()).limit(1)
        with Session(self._engine) as session:
            row = session.scalars(statement).first()
            return None if row is None else _record(row)

    def get(self, host_id: UUID) -> HostRecord | None:
        """Return one host, ended or not; None if there is no such host."""
        with Session(self._engine) as session:
            row = session.get(HostRow, host_id)
            return None if row is None else _record(row)

    def record(self, transition: RuntimeTransition) -> None:
        """Append a runtime transition."""
        with Session(self._engine) as session, session.begin():
            session.add(
                TransitionRow(
                    deployment_id=transition.deployment_id,
                    status=transition.status.value,
                    desired=transition.desired.value,
                    details=transition.details,
                    error=transition.error,
                    checkpoints=transition.checkpoints,
                    last_sync=transition.last_sync,
                    recorded_at=datetime.now(UTC),
                )
            )

    def forget_transitions(self, deployment_id: UUID, below: int) -> None:
        """Delete the transitions of one incarnation with a sequence below ``below``."""
        statement = delete(TransitionRow).where(TransitionRow.deployment_id == deployment_id, TransitionRow.sequence < below)
        with Session(self._engine) as session, session.begin():
            session.execute(statement)

    def ended_before(self, moment: datetime) -> list[HostRecord]:
        """Return the hosts that were declared ended before a point in time."""
        statement = select(HostRow).where(HostRow.ended_at < moment)
        with Session(self._engine) as session:
            return [_record(row) for row in session.scalars(statement)]

    def forget_host(self, host_id: UUID) -> None:
        """Delete the row of a host that has ended."""
        with Session(self._engine) as session, session.begin():
            session.execute(delete(HostRow).where(HostRow.host_id == host_id, HostRow.ended_at.is_not(None)))

    def transitions(self, deployment_id: UUID, after: int) -> list[RuntimeTransition]:
        """Return the transitions of one incarnation with a sequence above ``after``, in order."""
        statement = (
            select(TransitionRow)
            .where(TransitionRow.deployment_id == deployment_id, TransitionRow.sequence > after)
            .order_by(TransitionRow.sequence)
        )
        with Session(self._engine) as session:
            return [
                RuntimeTransition(
                    sequence=row.sequence,
                    deployment_id=row.deployment_id,
                    status=RuntimeStatus(row.status),
                    desired=RuntimeStatus(row.desired),
                    details=row.details,
                    error=row.error,
                    checkpoints=row.checkpoints,
                    last_sync=row.last_sync,
                )
                for row in session.scalars(statement)
            ]


def _record(row: HostRow) -> HostRecord:
    return HostRecord(
        host_id=row.host_id,
        kind=row.kind,
        deployment_id=row.deployment_id,
        deployment=row.deployment,
        url=row.url,
        token=row.token,
        pid=row.pid,
        machine=row.machine,
        log_path=row.log_path,
        submitted_at=row.submitted_at,
        heartbeat=row.heartbeat,
        ended_at=row.ended_at,
        end_reason=row.end_reason,
    )
