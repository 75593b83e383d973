"""API keys and their scopes: reading only, or reading and changing.

A key is shown once, when it is created; the store has its SHA-256. Keys are long and random, so that nobody finds one by its hash,
and the time to compare hashes reveals nothing about a key.
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


class KeyScope(StrEnum):
    """The scope of a key: ``read`` for requests that change nothing, ``write`` for all."""

    READ = "read"
    WRITE = "write"


class ApiKeyRow(Base):
    """The row of an API key, without the key."""

    __tablename__ = "api_keys"

    id: Mapped[UUID] = mapped_column(Uuid, primary_key=True)
    name: Mapped[str] = mapped_column(String(63), unique=True)
    key_hash: Mapped[str] = mapped_column(String(64), unique=True)
    scope: Mapped[str] = mapped_column(String(16))
    created_at: Mapped[datetime] = mapped_column(DateTime(timezone=True))


@dataclass(frozen=True, slots=True)
class ApiKey:
    """The public part of an API key."""

    id: UUID
    name: str
    scope: KeyScope


_log = logging.getLogger(__name__)
_SHOWN: Final = (ApiKeyRow.id, ApiKeyRow.name, ApiKeyRow.scope)


class ApiKeys:
    """The keys of a store, and those of ``given``, which have the scope ``write``. Thread-safe."""

    def __init__(self, engine: Engine, given: Iterable[str] = ()) -> None:
        self._engine = engine
        self._given = frozenset(_hash_key(key) for key in given)
        self._required = bool(self._given)

    def are_required(self) -> bool:
        """Return True if requests need a key. Once they do, deleting the last key does not open the service to everybody."""
        if not self._required:
            with Session(self._engine) as session:
                self._required = session.scalar(select(ApiKeyRow.id).limit(1)) is not None
            if self._required:
                _log.info("The store has an API key: from now on requests need one")
        return self._required

    def scope_of(self, key: str) -> KeyScope | None:
        """Return the scope of a key; None if there is no such key."""
        hashed = _hash_key(key)
        if hashed in self._given:
            return KeyScope.WRITE
        with Session(self._engine) as session:
            scope = session.scalar(select(ApiKeyRow.scope).where(ApiKeyRow.key_hash == hashed))
        return None if scope is None else KeyScope(scope)

    def unreadable(self, error: SQLAlchemyError) -> Problem:
        """Return the error for a caller whose key cannot be looked up."""
        return errors.store_unusable(error, self._engine.url)

    def create(self, name: str, scope: KeyScope) -> tuple[ApiKey, str]:
        """Create a key.

        :returns: its entry, and the key itself, which cannot be retrieved again
        :raises Problem: DuplicateName, when there is a key of this name
        """
        key = new_key()
        made = ApiKey(uuid7(), name, scope)
        values = {"id": made.id, "name": name, "key_hash": _hash_key(key), "scope": scope.value, "created_at": datetime.now(UTC)}
        try:
            with Session(self._engine) as session, session.begin():
                session.execute(insert(ApiKeyRow).values(values))
        except IntegrityError as error:
            raise errors.duplicate_name(name, "An API key") from error
        return made, key

    def all(self) -> list[ApiKey]:
        """Return the keys of the store, oldest first."""
        with Session(self._engine) as session:
            return [_to_api_key(row) for row in session.execute(select(*_SHOWN).order_by(ApiKeyRow.created_at, ApiKeyRow.id))]

    def get(self, name: str) -> ApiKey:
        """Return the key of this name.

        :raises Problem: UnknownApiKey, when there is none
        """
        with Session(self._engine) as session:
            row = session.execute(select(*_SHOWN).where(ApiKeyRow.name == name)).one_or_none()
        if row is None:
            raise _unknown(name)
        return _to_api_key(row)

    def delete(self, name: str) -> None:
        """Delete a key, which is not accepted from now on.

        :raises Problem: UnknownApiKey, when there is none
        """
        with Session(self._engine) as session, session.begin():
            if not session.connection().execute(delete(ApiKeyRow).where(ApiKeyRow.name == name)).rowcount:
                raise _unknown(name)


def new_key() -> str:
    """Return a new unguessable key; its prefix identifies it to those who find one where it should not be."""
    return f"apk_{secrets.token_urlsafe(32)}"


def _hash_key(key: str) -> str:
    return hashlib.sha256(key.encode("utf-8", "surrogateescape")).hexdigest()


def _to_api_key(row: Row[UUID, str, str]) -> ApiKey:
    return ApiKey(row.id, row.name, KeyScope(row.scope))


def _unknown(name: str) -> Problem:
    return Problem(ErrorCode.UNKNOWN_API_KEY, f"There is no API key named '{name}'", {"name": name})
