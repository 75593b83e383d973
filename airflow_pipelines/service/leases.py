"""Short-lived leases in the store, so that processes do not do the same work at the same time.

A lease saves work and noise; actions that must not happen twice are guarded by compare-and-swap and by idempotent calls.
"""

from __future__ import annotations

import os
import time

from sqlalchemy import Engine, Float, String, delete, insert, select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Mapped, Session, mapped_column
from uuid6 import uuid7

from airflow_pipelines.contract.registry import Base
from airflow_pipelines.service import processes

DURATION_S = 30.0


class LeaseRow(Base):
    """The holder of a lease. ``machine`` and ``pid`` allow others to take over at once from a process that died."""

    __tablename__ = "leases"

    name: Mapped[str] = mapped_column(String(255), primary_key=True)
    owner: Mapped[str] = mapped_column(String(64))
    machine: Mapped[str] = mapped_column(String(255))
    pid: Mapped[int]
    expires_at: Mapped[float] = mapped_column(Float)


class Leases:
    """The leases of one service instance."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._owner = str(uuid7())

    def acquire(self, name: str) -> bool:
        """Acquire or renew the lease; return False while another instance holds it."""
        now = time.time()
        mine = {"owner": self._owner, "machine": processes.this_machine(), "pid": os.getpid(), "expires_at": now + DURATION_S}
        with self._engine.connect() as connection:
            row = connection.execute(select(LeaseRow.__table__).where(LeaseRow.name == name)).mappings().first()
        if row is None:
            return self._insert(name, mine)
        abandoned = row["machine"] == processes.this_machine() and not processes.is_alive(row["pid"])
        if row["owner"] != self._owner and row["expires_at"] > now and not abandoned:
            return False
        with Session(self._engine) as session, session.begin():
            statement = update(LeaseRow).where(
                LeaseRow.name == name, LeaseRow.owner == row["owner"], LeaseRow.expires_at == row["expires_at"]
            )
            return session.connection().execute(statement.values(mine)).rowcount == 1

    def release(self, name: str) -> None:
        """Release the lease."""
        with Session(self._engine) as session, session.begin():
            session.execute(delete(LeaseRow).where(LeaseRow.name == name, LeaseRow.owner == self._owner))

    def _insert(self, name: str, values: dict[str, object]) -> bool:
        try:
            with Session(self._engine) as session, session.begin():
                session.execute(insert(LeaseRow).values(name=name, **values))
        except IntegrityError:
            return False
        return True
