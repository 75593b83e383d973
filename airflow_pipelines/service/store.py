"""The service's part of the store: pipelines and their events, changed only by compare-and-swap."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from typing import Any, TypeVar
from uuid import UUID

from sqlalchemy import (
    JSON,
    DateTime,
    Dialect,
    Engine,
    Integer,
    Select,
    String,
    Text,
    TypeDecorator,
    Uuid,
    delete,
    func,
    insert,
    inspect,
    or_,
    select,
    text,
    update,
)
from sqlalchemy.exc import IntegrityError, OperationalError, ProgrammingError, SQLAlchemyError
from sqlalchemy.orm import InstrumentedAttribute, Mapped, Session, mapped_column
from sqlalchemy.schema import CreateColumn
from tenacity import retry_if_exception
from uuid6 import uuid7

from airflow_pipelines.common.retries import RetryPolicy
from airflow_pipelines.contract.enums import StorageStatus
from airflow_pipelines.contract.registry import Base, TransitionRow
from airflow_pipelines.contract.statuses import CompilationStatus, ResourcesStatus, RuntimeStatus
from airflow_pipelines.program.sources import SourceFile
from airflow_pipelines.service import errors
from airflow_pipelines.service.records import COMPILE_ERRORS, PipelineRecord
from airflow_pipelines.service.store_failures import StoreFailure, store_failure

logger = logging.getLogger(__name__)

EVENTS_KEPT = 720
"""The number of events of one pipeline that are kept."""


class UtcDateTime(TypeDecorator[datetime]):
    """A time column. SQLite loses the time zone, so it is restored on reading."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_result_value(self, value: datetime | None, _dialect: Dialect) -> datetime | None:
        """Restore the time zone."""
        return value.replace(tzinfo=UTC) if value is not None and value.tzinfo is None else value


class PipelineRow(Base):
    """The row of a pipeline. Columns are the fields of :class:`PipelineRecord`."""

    __tablename__ = "pipelines"

    id: Mapped[UUID] = mapped_column(Uuid, primary_key=True)
    name: Mapped[str] = mapped_column(String(63), unique=True)
    description: Mapped[str] = mapped_column(String(300))
    tags: Mapped[Any] = mapped_column(JSON)
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
    revision: Mapped[int] = mapped_column(Integer)
    version: Mapped[int] = mapped_column(Integer)
    program_version: Mapped[int] = mapped_column(Integer)
    refresh_version: Mapped[int] = mapped_column(Integer)
    platform_version: Mapped[str] = mapped_column(String(64))
    runtime_config: Mapped[Any] = mapped_column(JSON)
    program_code: Mapped[str] = mapped_column(Text)
    udf_rust: Mapped[str] = mapped_column(Text)
    udf_toml: Mapped[str] = mapped_column(Text)
    program_config: Mapped[Any] = mapped_column(JSON)
    program_status: Mapped[str] = mapped_column(String(32))
    program_status_since: Mapped[datetime] = mapped_column(UtcDateTime)
    program_error: Mapped[Any] = mapped_column(JSON(none_as_null=True), nullable=True)
    program_info: Mapped[Any] = mapped_column(JSON(none_as_null=True), nullable=True)
    deployment_error: Mapped[Any] = mapped_column(JSON(none_as_null=True), nullable=True)
    storage_status: Mapped[str] = mapped_column(String(32))
    storage_status_details: Mapped[Any] = mapped_column(JSON(none_as_null=True), nullable=True)
    deployment_resources_status: Mapped[str] = mapped_column(String(32))
    deployment_resources_status_details: Mapped[Any] = mapped_column(JSON(none_as_null=True), nullable=True)
    deployment_resources_status_since: Mapped[datetime] = mapped_column(UtcDateTime)
    deployment_resources_desired_status: Mapped[str] = mapped_column(String(32))
    deployment_resources_desired_status_since: Mapped[datetime] = mapped_column(UtcDateTime)
    deployment_runtime_status: Mapped[str | None] = mapped_column(String(32), nullable=True)
    deployment_runtime_status_details: Mapped[Any] = mapped_column(JSON(none_as_null=True), nullable=True)
    deployment_runtime_status_since: Mapped[datetime | None] = mapped_column(UtcDateTime, nullable=True)
    deployment_runtime_desired_status: Mapped[str | None] = mapped_column(String(32), nullable=True)
    deployment_runtime_desired_status_since: Mapped[datetime | None] = mapped_column(UtcDateTime, nullable=True)
    deployment_initial: Mapped[str | None] = mapped_column(String(32), nullable=True)
    deployment_id: Mapped[UUID | None] = mapped_column(Uuid, nullable=True)
    bootstrap_policy: Mapped[str | None] = mapped_column(String(32), nullable=True)
    silent_bootstrap: Mapped[bool | None] = mapped_column(nullable=True)
    concurrent_bootstrap: Mapped[bool | None] = mapped_column(nullable=True)
    deployer: Mapped[str | None] = mapped_column(String(255), nullable=True)
    host_id: Mapped[UUID | None] = mapped_column(Uuid, nullable=True)
    deployment_config: Mapped[Any] = mapped_column(JSON(none_as_null=True), nullable=True)
    provisioning_since: Mapped[datetime | None] = mapped_column(UtcDateTime, nullable=True)
    compile_claimed_at: Mapped[datetime | None] = mapped_column(UtcDateTime, nullable=True)
    consumed_sequence: Mapped[int] = mapped_column(Integer)
    udf_python: Mapped[str] = mapped_column(Text, server_default="")
    from_checkpoint: Mapped[UUID | None] = mapped_column(Uuid, nullable=True)
    # A list of pairs: databases may order the keys of an object, and the first file is the one that is executed.
    stream_files: Mapped[Any] = mapped_column(JSON(none_as_null=True), nullable=True)
    stream_arguments: Mapped[Any] = mapped_column(JSON(none_as_null=True), nullable=True)


class EventRow(Base):
    """The status of a pipeline after a change of any of its components."""

    __tablename__ = "pipeline_events"

    sequence: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=True)
    event_id: Mapped[UUID] = mapped_column(Uuid, unique=True)
    pipeline_id: Mapped[UUID] = mapped_column(Uuid, index=True)
    recorded_at: Mapped[datetime] = mapped_column(UtcDateTime)
    deployment_resources_status: Mapped[str] = mapped_column(String(32))
    deployment_resources_desired_status: Mapped[str] = mapped_column(String(32))
    deployment_runtime_status: Mapped[str | None] = mapped_column(String(32), nullable=True)
    deployment_runtime_desired_status: Mapped[str | None] = mapped_column(String(32), nullable=True)
    program_status: Mapped[str] = mapped_column(String(32))
    storage_status: Mapped[str] = mapped_column(String(32))
    deployment_resources_status_details: Mapped[Any] = mapped_column(JSON(none_as_null=True), nullable=True)
    deployment_runtime_status_details: Mapped[Any] = mapped_column(JSON(none_as_null=True), nullable=True)
    deployment_error: Mapped[Any] = mapped_column(JSON(none_as_null=True), nullable=True)
    storage_status_details: Mapped[Any] = mapped_column(JSON(none_as_null=True), nullable=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """An event of a pipeline."""

    event_id: UUID
    recorded_at: datetime
    deployment_resources_status: str
    deployment_resources_desired_status: str
    deployment_runtime_status: str | None
    deployment_runtime_desired_status: str | None
    program_status: str
    storage_status: str
    deployment_resources_status_details: Any
    deployment_runtime_status_details: Any
    deployment_error: Any
    storage_status_details: Any


_FIELDS = tuple(field.name for field in dataclasses.fields(PipelineRecord))
_OBJECTS = (
    "runtime_config", "program_config", "program_error", "program_info", "deployment_error", "storage_status_details",
    "deployment_resources_status_details", "deployment_runtime_status_details", "deployment_config",
)  # fmt: skip
"""The fields that hold a JSON object or nothing."""
_EVENT_FIELDS = tuple(field.name for field in dataclasses.fields(Event))


T = TypeVar("T")


class Conflict(Exception):
    """The error of a pipeline that was changed by another process since it was read."""


class Store:
    """The pipelines and events over one SQLAlchemy engine."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    @property
    def engine(self) -> Engine:
        """The engine, for the registry of hosts, which shares the database."""
        return self._engine

    def create_tables(self) -> None:
        """Create the tables, columns and indexes that are missing; several processes may do so at once.

        :raises Problem: when the database cannot be used
        """
        # Of processes that create the same table at once, the slower ones find it at their next attempt. Each lost attempt means
        # that another process has created one more table.
        look = RetryPolicy(attempts=2 * len(Base.metadata.tables)).retrying(retry_if_exception(_has_lost_race))
        try:
            look(Base.metadata.create_all, self._engine)
            look(_add_columns, self._engine)
            look(_add_indexes, self._engine)
        except SQLAlchemyError as error:
            raise errors.store_unusable(error, self._engine.url) from error

    def create(self, record: PipelineRecord) -> None:
        """Add a pipeline; raise the contract's DuplicateName if its name is taken."""
        try:
            with Session(self._engine) as session, session.begin():
                session.execute(insert(PipelineRow).values(_row_values(record)))
                session.execute(insert(EventRow).values(_event_values(record)))
        except IntegrityError as error:
            raise errors.duplicate_name(record.name) from error

    def find(self, name: str) -> PipelineRecord | None:
        """Return the pipeline called ``name``, or None."""
        return self._read_one(select(PipelineRow.__table__).where(PipelineRow.name == name))

    def get(self, pipeline_id: UUID) -> PipelineRecord | None:
        """Return the pipeline with this id, or None once it is deleted."""
        return self._read_one(select(PipelineRow.__table__).where(PipelineRow.id == pipeline_id))

    def require(self, name: str) -> PipelineRecord:
        """Return the pipeline called ``name``, or raise the contract's UnknownPipelineName."""
        record = self.find(name)
        if record is None:
            raise errors.unknown_pipeline(name)
        return record

    def all(self) -> list[PipelineRecord]:
        """Return all pipelines, oldest first."""
        return self._read_readable(
            select(PipelineRow.__table__).order_by(PipelineRow.created_at, PipelineRow.id), PipelineRow.name, _record
        )

    def moving(self) -> list[UUID]:
        """Return the ids of the pipelines that have an incarnation or are on their way to another status."""
        settled = (*sorted(status.value for status in COMPILE_ERRORS), CompilationStatus.SUCCESS.value)
        statement = select(PipelineRow.id).where(
            or_(
                PipelineRow.deployment_resources_status != ResourcesStatus.STOPPED.value,
                PipelineRow.deployment_resources_desired_status != ResourcesStatus.STOPPED.value,
                PipelineRow.program_status.not_in(settled),
                PipelineRow.storage_status == StorageStatus.CLEARING.value,
            )
        )
        with self._engine.connect() as connection:
            return list(connection.execute(statement).scalars())

    def commit(self, old: PipelineRecord, steps: Sequence[PipelineRecord]) -> PipelineRecord:
        """Replace ``old`` by the last of ``steps``, with one event for each step that changed a component of the status.

        :raises Conflict: when the stored pipeline is no longer ``old``
        """
        if not steps or steps[-1] == old:
            return old
        new = dataclasses.replace(steps[-1], revision=old.revision + 1)
        events = [
            _event_values(step)
            for before, step in zip([old, *steps], steps, strict=False)
            if before.event_status != step.event_status
        ]
        try:
            with Session(self._engine) as session, session.begin():
                statement = update(PipelineRow).where(PipelineRow.id == old.id, PipelineRow.revision == old.revision)
                if session.connection().execute(statement.values(_row_values(new))).rowcount != 1:
                    raise Conflict(old.name)
                if events:
                    session.execute(insert(EventRow), events)
                    self._trim_events(session, old.id)
        except IntegrityError as error:
            raise errors.duplicate_name(new.name) from error
        return new

    def delete(self, record: PipelineRecord) -> None:
        """Delete a pipeline and its events; raise :class:`Conflict` if it was changed meanwhile."""
        with Session(self._engine) as session, session.begin():
            statement = delete(PipelineRow).where(PipelineRow.id == record.id, PipelineRow.revision == record.revision)
            if session.connection().execute(statement).rowcount != 1:
                raise Conflict(record.name)
            session.execute(delete(EventRow).where(EventRow.pipeline_id == record.id))

    def forget_ended_transitions(self) -> None:
        """Delete the transitions of incarnations that are over, which nobody will read any more.

        The newest of all is always kept: SQLite would reuse its number, and readers that have seen it would miss the next one.
        """
        newest = select(func.max(TransitionRow.sequence)).scalar_subquery()
        living = select(PipelineRow.deployment_id).where(PipelineRow.deployment_id.is_not(None))
        statement = delete(TransitionRow).where(TransitionRow.sequence < newest, TransitionRow.deployment_id.not_in(living))
        with Session(self._engine) as session, session.begin():
            session.execute(statement, execution_options={"synchronize_session": False})

    def events(self, pipeline_id: UUID) -> list[Event]:
        """Return a pipeline's events, newest first."""
        statement = select(EventRow.__table__).where(EventRow.pipeline_id == pipeline_id).order_by(EventRow.sequence.desc())
        return self._read_readable(statement.limit(EVENTS_KEPT), EventRow.sequence, _to_event)

    def _trim_events(self, session: Session, pipeline_id: UUID) -> None:
        newest = select(EventRow.sequence).where(EventRow.pipeline_id == pipeline_id).order_by(EventRow.sequence.desc())
        oldest_kept = newest.offset(EVENTS_KEPT - 1).limit(1).scalar_subquery()
        session.execute(delete(EventRow).where(EventRow.pipeline_id == pipeline_id, EventRow.sequence < oldest_kept))

    def _read_one(self, statement: Any) -> PipelineRecord | None:
        try:
            with self._engine.connect() as connection:
                row = connection.execute(statement).mappings().first()
                return None if row is None else _record(row)
        except _MAY_BE_DAMAGE as error:
            if not _is_damage(error):
                raise
            raise errors.damaged_record(error) from error

    def _read_readable(self, statement: Select[Any], key: InstrumentedAttribute[Any], read: Callable[[Any], T]) -> list[T]:
        """Return the results of a statement without unreadable rows: one such row must not hide all others."""
        try:
            with self._engine.connect() as connection:
                return [read(row) for row in connection.execute(statement).mappings()]
        except _MAY_BE_DAMAGE as error:
            if not _is_damage(error):
                raise
            with self._engine.connect() as connection:
                keys = connection.execute(statement.with_only_columns(key)).scalars().all()
        results = []
        for value in keys:
            try:
                with self._engine.connect() as connection:
                    results += [read(row) for row in connection.execute(statement.where(key == value)).mappings()]
            except _MAY_BE_DAMAGE as error:
                if not _is_damage(error):
                    raise
                logger.exception("Row %s of %s cannot be read and is left out", value, key.class_.__tablename__)
        return results


def _add_columns(engine: Engine) -> None:
    """Add missing columns, each of which has a default, to tables that an earlier release created."""
    inspector = inspect(engine)
    for table in Base.metadata.sorted_tables:
        present = {column["name"] for column in inspector.get_columns(table.name)}
        for column in table.columns:
            if column.name not in present:
                definition = CreateColumn(column).compile(dialect=engine.dialect)
                with engine.begin() as connection:
                    connection.execute(text(f"ALTER TABLE {table.name} ADD COLUMN {definition}"))


def _add_indexes(engine: Engine) -> None:
    """Add missing indexes to tables that an earlier release created."""
    inspector = inspect(engine)
    for table in Base.metadata.sorted_tables:
        present = {index["name"] for index in inspector.get_indexes(table.name)}
        for index in table.indexes:
            if index.name not in present:
                index.create(engine)


def _record(row: Any) -> PipelineRecord:
    values = {field: row[field] for field in _FIELDS}
    for field in _OBJECTS:
        if not isinstance(values[field], dict | None):
            raise TypeError(f"{field} holds a {type(values[field]).__name__}")
    values["tags"] = tuple(values["tags"])
    values["stream_files"] = tuple(SourceFile(path, text) for path, text in values["stream_files"] or ())
    values["stream_arguments"] = tuple(values["stream_arguments"] or ())
    values["program_status"] = CompilationStatus(values["program_status"])
    values["storage_status"] = StorageStatus(values["storage_status"])
    for field in ("deployment_resources_status", "deployment_resources_desired_status"):
        values[field] = ResourcesStatus(values[field])
    for field in ("deployment_runtime_status", "deployment_runtime_desired_status"):
        values[field] = None if values[field] is None else RuntimeStatus(values[field])
    return PipelineRecord(**values)


_MAY_BE_DAMAGE = (ValueError, TypeError, OperationalError)


def _is_damage(error: Exception) -> bool:
    """Return True if reading a row failed because of its contents, and not because the database does not answer."""
    return not isinstance(error, OperationalError) or "Could not decode" in str(error.orig)


def _to_event(row: Any) -> Event:
    return Event(**{field: row[field] for field in _EVENT_FIELDS})


def _row_values(record: PipelineRecord) -> dict[str, Any]:
    values = {field: _column_value(getattr(record, field)) for field in _FIELDS}
    values["tags"] = list(record.tags)
    values["stream_files"] = [[file.path, file.text] for file in record.stream_files] or None
    values["stream_arguments"] = list(record.stream_arguments) or None
    return values


def _column_value(value: Any) -> Any:
    return value.value if isinstance(value, Enum) else value


def _event_values(record: PipelineRecord) -> dict[str, Any]:
    values = {field: _column_value(getattr(record, field)) for field in _EVENT_FIELDS if field not in {"event_id", "recorded_at"}}
    return values | {"event_id": uuid7(), "recorded_at": datetime.now(UTC), "pipeline_id": record.id}


def _has_lost_race(error: BaseException) -> bool:
    """Return True if a table, column or index could not be created because another process has just created it."""
    if isinstance(error, IntegrityError):
        return True
    if not isinstance(error, OperationalError | ProgrammingError):
        return False
    # SQLite has one code for all that is wrong with a statement.
    text = str(error.orig)
    return store_failure(error) is StoreFailure.EXISTS or "already exists" in text or "duplicate column" in text
