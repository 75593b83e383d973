"""Which transports and formats there are, what their options are, and how a declaration becomes a working connector."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar
from urllib.parse import quote

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from airflow_pipelines.connectors.base import (
    ConnectorFailure,
    InputTransport,
    InvalidOptionError,
    OutputTransport,
    UnknownOptionError,
)
from airflow_pipelines.connectors.formats.csv import CsvOptions, CsvParser
from airflow_pipelines.connectors.formats.json import JsonOptions, JsonParser
from airflow_pipelines.connectors.formats.parquet import ParquetOptions, ParquetParser
from airflow_pipelines.connectors.formats.parsed import Parser, RecordProblem
from airflow_pipelines.connectors.transports.file_input import FileInput, FileInputOptions
from airflow_pipelines.connectors.transports.file_output import FileOutput, FileOutputOptions
from airflow_pipelines.connectors.transports.null_output import NullOutput, NullOutputOptions
from airflow_pipelines.engine.schema import RelationSchema
from airflow_pipelines.engine.storage.fence import Fence
from airflow_pipelines.program.connectors import Connector, ConnectorDirection
from airflow_pipelines.references import References, ReferenceWithoutValueError

Options = TypeVar("Options", bound=BaseModel)


class InputOptions(BaseModel):
    """Options of every input connector.

    :param paused: it starts paused
    :param labels: names that ``start_after`` of others may give
    :param start_after: it starts when all inputs that carry one of these labels have reached their end
    :param max_batch_size: the most records of it in one step
    :param max_queued_records: how many records may wait before reading pauses
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    paused: bool = False
    labels: tuple[str, ...] = ()
    start_after: tuple[str, ...] | None = None
    max_batch_size: int | None = Field(default=None, ge=1)
    max_queued_records: int = Field(default=1_000_000, ge=1)
    max_worker_batch_size: int | None = None
    max_queued_bytes: int | None = None
    soft_delete: Literal[False] = False

    @field_validator("start_after", mode="before")
    @classmethod
    def _one_or_many(cls, value: Any) -> Any:
        if isinstance(value, str):
            return (value,)
        if value is not None and not value:
            raise ValueError("an empty list of labels would never start the connector")
        return value


class OutputOptions(BaseModel):
    """Options of every output connector; those that only accept their default are not supported yet."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    labels: tuple[str, ...] = ()
    max_queued_records: int = Field(default=1_000_000, ge=1)
    max_queued_bytes: int | None = None
    index: str | None = None
    send_snapshot: Literal[False] = False
    enable_output_buffer: Literal[False] = False
    max_output_buffer_time_millis: int | None = None
    max_output_buffer_size_records: int | None = None


_UNSUPPORTED = {
    "max_worker_batch_size": "use 'max_batch_size', which limits the records of one step",
    "max_queued_bytes": "use 'max_queued_records'",
    "soft_delete": "deletes always take a row away",
    "index": "changes are written as deletes and inserts",
    "send_snapshot": "an output gets the changes of every step since its start",
    "enable_output_buffer": "every step is written at once",
    "max_output_buffer_time_millis": "every step is written at once",
    "max_output_buffer_size_records": "every step is written at once",
}


@dataclass(frozen=True, slots=True)
class _Transport:
    """A transport: which way it goes, its options, and the formats it can carry (empty: none is needed)."""

    direction: ConnectorDirection
    options: type[BaseModel]
    formats: tuple[str, ...]


_TRANSPORTS: Mapping[str, _Transport] = {
    "file_input": _Transport(ConnectorDirection.INPUT, FileInputOptions, ("csv", "json", "parquet")),
    "file_output": _Transport(ConnectorDirection.OUTPUT, FileOutputOptions, ("csv", "json")),
    "null_output": _Transport(ConnectorDirection.OUTPUT, NullOutputOptions, ()),
}
_FORMATS: Mapping[str, type[BaseModel]] = {"csv": CsvOptions, "json": JsonOptions, "parquet": ParquetOptions}
_PARSERS: Mapping[str, Callable[[RelationSchema, Any], Parser]] = {
    "csv": CsvParser,
    "json": JsonParser,
    "parquet": lambda schema, _: ParquetParser(schema),
}


def validate(connector: Connector, schema: RelationSchema) -> None:
    """Check a declaration: names, options, their values, and whether the format can read the relation's columns.

    :raises UnknownOptionError: naming what is wrong and what there is instead; :class:`InvalidOptionError`, a subclass, when the
        name is known but the value, the direction or the combination is not allowed
    """
    where = f"connector {connector.endpoint!r}"
    transport = _transport(connector, where)
    _options(transport.options, connector.transport_config, f"transport {connector.transport!r}", where)
    if connector.direction is ConnectorDirection.INPUT:
        input_options(connector)
    else:
        output_options(connector)
    if not transport.formats:
        if connector.format is not None:
            raise InvalidOptionError(f"{where}: transport {connector.transport!r} takes no format")
        return
    if connector.format is None:
        formats = ", ".join(transport.formats)
        raise InvalidOptionError(f"{where}: transport {connector.transport!r} needs a format; known formats: {formats}")
    if connector.format not in transport.formats:
        raise UnknownOptionError(f"{where}: {_unknown('format', connector.format, transport.formats)}", connector.format)
    if connector.direction is ConnectorDirection.INPUT:
        input_parser(schema, connector.format, connector.format_config, where)
    else:
        _options(_FORMATS[connector.format], connector.format_config, f"format {connector.format!r}", where)


def input_options(connector: Connector) -> InputOptions:
    """The options of an input that do not depend on its transport.

    :raises UnknownOptionError: like :func:`validate`
    """
    return _supported(connector, InputOptions)


def output_options(connector: Connector) -> OutputOptions:
    """The options of an output that do not depend on its transport.

    :raises UnknownOptionError: like :func:`validate`
    """
    return _supported(connector, OutputOptions)


def _supported(connector: Connector, model: type[Options]) -> Options:
    where = f"connector {connector.endpoint!r}"
    options = _options(model, connector.options, "", where)
    for name, instead in _UNSUPPORTED.items():
        if getattr(options, name, None) not in (None, False):
            raise InvalidOptionError(f"{where}: option {name!r} is not supported; {instead}", name)
    return options


def open_input(connector: Connector, schema: RelationSchema, references: References) -> InputTransport:
    """The input that a declaration describes; it is not opened yet.

    :param references: what references in its options stand for
    :raises UnknownOptionError: like :func:`validate`
    :raises ConnectorFailure: when a reference has no value
    """
    validate(connector, schema)
    where = f"connector {connector.endpoint!r}"
    options = FileInputOptions.model_validate(_resolved(connector.transport_config, references, where))
    format_name = connector.format or ""
    config = _resolved(connector.format_config, references, where)
    return FileInput(options, format_name, lambda: input_parser(schema, format_name, config, where))


def open_output(
    connector: Connector,
    schema: RelationSchema,
    references: References,
    positions: Path | None = None,
    fence: Fence | None = None,
) -> OutputTransport:
    """The output that a declaration describes; it is not opened yet.

    :param references: what references in its options stand for
    :param positions: a folder of the pipeline's storage in which outputs keep how far they are; None without storage
    :param fence: the epoch of the run in that storage, after which outputs write nothing more
    :raises UnknownOptionError: like :func:`validate`
    :raises ConnectorFailure: when a reference has no value
    """
    validate(connector, schema)
    if connector.transport == "null_output":
        return NullOutput()
    where = f"connector {connector.endpoint!r}"
    options = FileOutputOptions.model_validate(_resolved(connector.transport_config, references, where))
    config = _resolved(connector.format_config, references, where)
    kept = positions / f"{quote(connector.endpoint, safe='')}.steps" if positions is not None else None
    if connector.format == "csv":
        return FileOutput(options, CsvOptions.model_validate(config), kept, fence)
    return FileOutput(options, JsonOptions.model_validate(config), kept, fence)


def input_parser(schema: RelationSchema, format_name: str, config: Mapping[str, Any], where: str) -> Parser:
    """A parser for one stream of a format.

    :param where: what is being set up, for messages
    :raises UnknownOptionError: for an unknown format or option, a bad value, or a column type that no input can fill
    """
    if format_name not in _FORMATS:
        raise UnknownOptionError(f"{where}: {_unknown('format', format_name, _FORMATS)}")
    options = _options(_FORMATS[format_name], config, f"format {format_name!r}", where)
    try:
        return _PARSERS[format_name](schema, options)
    except RecordProblem as problem:
        raise InvalidOptionError(f"{where}: {problem}") from problem


def _transport(connector: Connector, where: str) -> _Transport:
    usable = [name for name, transport in _TRANSPORTS.items() if transport.direction is connector.direction]
    transport = _TRANSPORTS.get(connector.transport)
    if transport is None:
        raise UnknownOptionError(f"{where}: {_unknown('transport', connector.transport, usable)}", connector.transport)
    if transport.direction is not connector.direction:
        goes, is_on = ("an output", "a table") if connector.direction is ConnectorDirection.INPUT else ("an input", "a view")
        known = ", ".join(usable)
        raise InvalidOptionError(
            f"{where}: transport {connector.transport!r} is {goes}, but the connector is on {is_on}; "
            f"known transports here: {known}",
            connector.transport,
        )
    return transport


def _options(model: type[Options], config: Mapping[str, Any], of: str, where: str) -> Options:
    try:
        return model.model_validate(dict(config))
    except ValidationError as error:
        # A misspelt option is what makes another one missing, so it is named first.
        problem = min(error.errors(), key=lambda found: found["type"] != "extra_forbidden")
        place = ".".join(str(part) for part in problem["loc"] if not isinstance(part, int)) or "value"
        suffix = f" of {of}" if of else ""
        if problem["type"] == "extra_forbidden":
            raise UnknownOptionError(f"{where}: {_unknown('option', place, model.model_fields, suffix)}", place) from None
        if problem["type"] == "missing":
            raise InvalidOptionError(f"{where}: option {place!r}{suffix} is missing") from None
        if place in _UNSUPPORTED:
            message = f"{where}: option {place!r}{suffix} is not supported; {_UNSUPPORTED[place]}"
            raise InvalidOptionError(message, place) from None
        # The value is left out: it may hold a password.
        raise InvalidOptionError(f"{where}: option {place!r}{suffix}: {problem['msg']}", place) from None


def _unknown(what: str, name: str, known: Iterable[str], of: str = "") -> str:
    names = sorted(known)
    close = difflib.get_close_matches(name.lower(), names, n=1)
    hint = f"; did you mean {close[0]!r}?" if close else ""
    listed = ", ".join(names) if names else "none"
    return f"unknown {what} {name!r}{of}; known {what}s: {listed}{hint}"


def _resolved(config: Mapping[str, Any], references: References, where: str) -> dict[str, Any]:
    """``config`` with references replaced; what comes out is never kept or shown."""
    try:
        return {name: references.resolve(value) for name, value in config.items()}
    except ReferenceWithoutValueError as error:
        raise ConnectorFailure(f"{where}: {error}") from error
