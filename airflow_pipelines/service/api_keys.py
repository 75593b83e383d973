"""API keys: who may read, and who may change things.

A key is shown once, when it is made; the store has its SHA-256. Keys are long and random, so that nobody finds one by its hash, and
comparing hashes says nothing about a key by the time it takes.
"""

from __future__ import annotations

import hashlib
import logging
import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Final
from uuid import UUID

from sqlalchemy import DateTime, Engine, Row, String, Uuid, delete, insert, select
from sqlalchemy.exc import IntegrityError, SQLAlchemyError
from sqlalchemy.orm import Mapped, Session, mapped_column
from uuid6 import uuid7

from airflow_pipelines.contract.error_codes import ErrorCode
from airflow_pipelines.contract.problems import Problem
from airflow_pipelines.contract.registry import Base
from airflow_pipelines.service import errors


class Scope(StrEnum):
    """What a key opens: ``read`` what changes nothing, ``write`` everything."""

    READ = "read"
    WRITE = "write"


class ApiKeyRow(Base):
    """An API key, without the key."""

    __tablename__ = "api_keys"

    id: Mapped[UUID] = mapped_column(Uuid, primary_key=True)
    name: Mapped[str] = mapped_column(String(63), unique=True)
    key_hash: Mapped[str] = mapped_column(String(64), unique=True)
    scope: Mapped[str] = mapped_column(String(16))
    created_at: Mapped[datetime] = mapped_column(DateTime(timezone=True))


@dataclass(frozen=True, slots=True)
class ApiKey:
    """An API key as it can be shown."""

    id: UUID
    name: str
    scope: Scope


_log = logging.getLogger(__name__)
_SHOWN: Final = (ApiKeyRow.id, ApiKeyRow.name, ApiKeyRow.scope)


class ApiKeys:
    """The keys of a store, and those of ``given``, which open everything. Thread-safe."""

    def __init__(self, engine: Engine, given: Iterable[str] = ()) -> None:
        self._engine = engine
        self._given = frozenset(_hashed(key) for key in given)
        self._required = bool(self._given)

    def are_required(self) -> bool:
        """Whether requests need a key. Once they do, deleting the last key does not open the service to everybody."""
        if not self._required:
            with Session(self._engine) as session:
                self._required = session.scalar(select(ApiKeyRow.id).limit(1)) is not None
            if self._required:
                _log.info("The store has an API key: from now on requests need one")
        return self._required

    def scope_of(self, key: str) -> Scope | None:
        """What a key opens; None when it is no key."""
        hashed = _hashed(key)
        if hashed in self._given:
            return Scope.WRITE
        with Session(self._engine) as session:
            found = session.scalar(select(ApiKeyRow.scope).where(ApiKeyRow.key_hash == hashed))
        return None if found is None else Scope(found)

    def unreadable(self, error: SQLAlchemyError) -> Problem:
        """What is answered to a caller whose key cannot be looked up."""
        return errors.store_unusable(error, self._engine.url)

    def create(self, name: str, scope: Scope) -> tuple[ApiKey, str]:
        """Make a key.

        :returns: its entry, and the key itself, which nobody can ask for again
        :raises Problem: DuplicateName
        """
        key = new_key()
        made = ApiKey(uuid7(), name, scope)
        values = {"id": made.id, "name": name, "key_hash": _hashed(key), "scope": scope.value, "created_at": datetime.now(UTC)}
        try:
            with Session(self._engine) as session, session.begin():
                session.execute(insert(ApiKeyRow).values(values))
        except IntegrityError as error:
            raise errors.duplicate_name(name, "An API key") from error
        return made, key

    def all(self) -> list[ApiKey]:
        """The keys of the store, oldest first."""
        with Session(self._engine) as session:
            return [_shown(row) for row in session.execute(select(*_SHOWN).order_by(ApiKeyRow.created_at, ApiKeyRow.id))]

    def get(self, name: str) -> ApiKey:
        """The key of this name.

        :raises Problem: UnknownApiKey
        """
        with Session(self._engine) as session:
            row = session.execute(select(*_SHOWN).where(ApiKeyRow.name == name)).one_or_none()
        if row is None:
            raise _unknown(name)
        return _shown(row)

    def delete(self, name: str) -> None:
        """Take a key away; it opens nothing from now on.

        :raises Problem: UnknownApiKey
        """
        with Session(self._engine) as session, session.begin():
            if not session.connection().execute(delete(ApiKeyRow).where(ApiKeyRow.name == name)).rowcount:
                raise _unknown(name)


def new_key() -> str:
    """A key that nobody can guess; its beginning says what it is to those who find one where it should not be."""
    return f"apk_{secrets.token_urlsafe(32)}"


def _hashed(key: str) -> str:
    return hashlib.sha256(key.encode("utf-8", "surrogateescape")).hexdigest()


def _shown(row: Row[UUID, str, str]) -> ApiKey:
    return ApiKey(row.id, row.name, Scope(row.scope))


def _unknown(name: str) -> Problem:
    return Problem(ErrorCode.UNKNOWN_API_KEY, f"There is no API key named '{name}'", {"name": name})
