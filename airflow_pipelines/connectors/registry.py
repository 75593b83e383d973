"""Which transports and formats there are, what their options are, and how a declaration becomes a working connector."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, get_args
from urllib.parse import quote

from pydantic import BaseModel, ValidationError

from airflow_pipelines.connectors.base import (
    ConnectorFailure,
    InputTransport,
    InvalidOptionError,
    OutputTransport,
    UnknownOptionError,
)
from airflow_pipelines.connectors.common_options import ConnectorOptions
from airflow_pipelines.connectors.formats.csv import CsvOptions, CsvParser
from airflow_pipelines.connectors.formats.defaults import Now, wall_clock
from airflow_pipelines.connectors.formats.json import JsonOptions, JsonParser
from airflow_pipelines.connectors.formats.parquet import ParquetOptions, ParquetParser
from airflow_pipelines.connectors.formats.parsed import Parser, RecordProblem
from airflow_pipelines.connectors.formats.raw import RawOptions, RawParser
from airflow_pipelines.connectors.planned_transports import PLANNED_FORMATS, PLANNED_TRANSPORTS
from airflow_pipelines.connectors.transports.datagen.options import DatagenOptions
from airflow_pipelines.connectors.transports.datagen.transport import Datagen
from airflow_pipelines.connectors.transports.empty_input import EmptyInput, EmptyInputOptions
from airflow_pipelines.connectors.transports.file_input import FileInput, FileInputOptions
from airflow_pipelines.connectors.transports.file_output import FileOutput, FileOutputOptions
from airflow_pipelines.connectors.transports.null_output import NullOutput, NullOutputOptions
from airflow_pipelines.connectors.transports.stream_source import StreamSource, StreamSourceOptions
from airflow_pipelines.connectors.transports.url_input import UrlInput, UrlInputOptions
from airflow_pipelines.engine.schema import RelationSchema
from airflow_pipelines.engine.storage.fence import Fence
from airflow_pipelines.program.connectors import Connector, ConnectorDirection
from airflow_pipelines.program.streams import STREAM_SOURCE
from airflow_pipelines.references import References, ReferenceWithoutValueError
from airflow_pipelines.streams.reading.client import ReadingProcess

Options = TypeVar("Options", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class _Transport:
    """A transport: which way it goes, its options, and the formats it can carry (empty: it needs none)."""

    direction: ConnectorDirection
    options: type[BaseModel]
    formats: tuple[str, ...]


_TRANSPORTS: Mapping[str, _Transport] = {
    "datagen": _Transport(ConnectorDirection.INPUT, DatagenOptions, ()),
    "empty_input": _Transport(ConnectorDirection.INPUT, EmptyInputOptions, ()),
    "file_input": _Transport(ConnectorDirection.INPUT, FileInputOptions, ("csv", "json", "parquet", "raw")),
    "file_output": _Transport(ConnectorDirection.OUTPUT, FileOutputOptions, ("csv", "json")),
    "null_output": _Transport(ConnectorDirection.OUTPUT, NullOutputOptions, ()),
    "url_input": _Transport(ConnectorDirection.INPUT, UrlInputOptions, ("csv", "json", "parquet", "raw")),
}
_FORMATS: Mapping[str, type[BaseModel]] = {
    "csv": CsvOptions,
    "json": JsonOptions,
    "parquet": ParquetOptions,
    "raw": RawOptions,
}
_PARSERS: Mapping[str, Callable[[RelationSchema, Any, Now], Parser]] = {
    "csv": CsvParser,
    "json": JsonParser,
    "parquet": lambda schema, _, now: ParquetParser(schema, now),
    "raw": lambda schema, options, _: RawParser(schema, options),
}


def validate(connector: Connector, schema: RelationSchema) -> None:
    """Check a declaration: names, options, their values, and whether the format can read the relation's columns.

    :raises UnknownOptionError: naming what is wrong and what there is instead; :class:`InvalidOptionError`, a subclass, when the
        name is known but the value, the direction or the combination is not allowed
    """
    where = f"connector {connector.endpoint!r}"
    _check_direction(connector, where)
    options = connector_options(connector)
    if connector.direction is ConnectorDirection.INPUT and options.soft_delete and schema.primary_key:
        raise InvalidOptionError(f"{where}: option 'soft_delete' is not for a table with a primary key", "soft_delete")
    if connector.transport not in PLANNED_TRANSPORTS:
        transport = _TRANSPORTS[connector.transport]
        _options(transport.options, connector.transport_config, f"transport {connector.transport!r}", where)
        if transport.formats:
            _check_format(connector, transport.formats, schema, where)


def _check_format(connector: Connector, formats: tuple[str, ...], schema: RelationSchema, where: str) -> None:
    if connector.format is None:
        listed = ", ".join(formats)
        raise InvalidOptionError(f"{where}: transport {connector.transport!r} needs a format; known formats: {listed}")
    if connector.format not in formats:
        if connector.format in {*_FORMATS, *PLANNED_FORMATS}:
            # It may be a format of this transport in another release.
            return
        raise UnknownOptionError(f"{where}: {_unknown('format', connector.format, formats)}", connector.format)
    if connector.direction is ConnectorDirection.INPUT:
        input_parser(schema, connector.format, connector.format_config, where)
    else:
        output_format(connector)


def formats_of(transport: str) -> tuple[str, ...]:
    """The formats that a transport of this release can carry; none for one that needs none.

    :param transport: its name
    """
    return _TRANSPORTS[transport].formats


def output_format(connector: Connector) -> CsvOptions | JsonOptions | None:
    """The options of the format of an output whose transport carries it; None for a transport that needs none.

    :raises UnknownOptionError: like :func:`validate`
    """
    if connector.format not in formats_of(connector.transport):
        return None
    config, of, where = connector.format_config, f"format {connector.format!r}", f"connector {connector.endpoint!r}"
    if connector.format == "csv":
        return _options(CsvOptions, config, of, where)
    return _options(JsonOptions, config, of, where)


def connector_options(connector: Connector) -> ConnectorOptions:
    """The options of a connector that do not depend on its transport.

    :raises UnknownOptionError: like :func:`validate`
    """
    return _options(ConnectorOptions, connector.options, "", f"connector {connector.endpoint!r}")


def open_input(connector: Connector, schema: RelationSchema, references: References, now: Now = wall_clock) -> InputTransport:
    """The input that a declaration describes; it is not opened yet.

    :param references: what references in its options stand for
    :param now: the clock that a DEFAULT may read
    :raises UnknownOptionError: like :func:`validate`
    :raises ConnectorFailure: when a reference has no value
    """
    validate(connector, schema)
    where = f"connector {connector.endpoint!r}"
    config = _resolved(connector.transport_config, references, where)
    if connector.transport == "datagen":
        return Datagen(DatagenOptions.model_validate(config), schema)
    if connector.transport == "empty_input":
        return EmptyInput()
    format_name = connector.format or ""
    format_config = _resolved(connector.format_config, references, where)

    def new_parser() -> Parser:
        return input_parser(schema, format_name, format_config, where, now)

    if connector.transport == "url_input":
        return UrlInput(UrlInputOptions.model_validate(config), new_parser)
    return FileInput(FileInputOptions.model_validate(config), format_name, new_parser)


def open_stream_source(connector: Connector, schema: RelationSchema, process: Callable[[], ReadingProcess]) -> InputTransport:
    """The input that reads a source of a stream program; it is not opened yet.

    :param connector: that of the source's hidden table
    :param schema: of the table
    :param process: gives the process that reads the sources of the program
    """
    return StreamSource(StreamSourceOptions.model_validate(dict(connector.transport_config)), schema, process)


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


def input_parser(schema: RelationSchema, format_name: str, config: Mapping[str, Any], where: str, now: Now = wall_clock) -> Parser:
    """A parser for one stream of a format.

    :param where: what is being set up, for messages
    :param now: the clock that a DEFAULT may read
    :raises UnknownOptionError: for an unknown format or option, a bad value, or a column type that no input can fill
    """
    if format_name not in _FORMATS:
        raise UnknownOptionError(f"{where}: {_unknown('format', format_name, _FORMATS)}")
    options = _options(_FORMATS[format_name], config, f"format {format_name!r}", where)
    if isinstance(options, JsonOptions) and options.update_format == "snowflake":
        message = "'snowflake' can be written and not read; use 'insert_delete', 'raw', 'weighted' or 'debezium'"
        raise InvalidOptionError(f"{where}: option 'update_format' of format 'json': {message}", "update_format")
    try:
        return _PARSERS[format_name](schema, options, now)
    except RecordProblem as problem:
        raise InvalidOptionError(f"{where}: {problem}") from problem


def options_of_format(format_name: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Options without those that only other formats have.

    :param format_name: the format
    :param given: options by name
    """
    own = _FORMATS[format_name].model_fields if format_name in _FORMATS else {}
    others = {name for model in _FORMATS.values() for name in model.model_fields} - set(own)
    return {name: value for name, value in given.items() if name not in others}


def _check_direction(connector: Connector, where: str) -> None:
    if connector.transport == STREAM_SOURCE:
        message = f"transport {STREAM_SOURCE!r} is what reads the sources of stream programs, and cannot be declared"
        raise InvalidOptionError(f"{where}: {message}", STREAM_SOURCE)
    transport = _TRANSPORTS.get(connector.transport) or PLANNED_TRANSPORTS.get(connector.transport)
    usable = [name for name, each in _TRANSPORTS.items() if each.direction is connector.direction]
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


def _options(model: type[Options], config: Mapping[str, Any], of: str, where: str) -> Options:
    try:
        return model.model_validate(dict(config))
    except ValidationError as error:
        # A misspelt option is what makes another one missing, so it is named first.
        problem = min(error.errors(), key=lambda found: found["type"] != "extra_forbidden")
        place = ".".join(str(part) for part in problem["loc"] if not isinstance(part, int)) or "value"
        suffix = f" of {of}" if of else ""
        if problem["type"] == "extra_forbidden":
            known = _model_at(model, problem["loc"][:-1]).model_fields
            raise UnknownOptionError(f"{where}: {_unknown('option', place, known, suffix)}", place) from None
        if problem["type"] == "missing":
            raise InvalidOptionError(f"{where}: option {place!r}{suffix} is missing") from None
        # The value is left out: it may hold a password.
        raise InvalidOptionError(f"{where}: option {place!r}{suffix}: {problem['msg']}", place) from None


def _model_at(model: type[BaseModel], place: Sequence[int | str]) -> type[BaseModel]:
    """The model of the options at a place within those of ``model``, whose parts are names of options, columns and numbers."""
    for part in place:
        if isinstance(part, str) and part in model.model_fields:
            model = next(_models_in(model.model_fields[part].annotation), model)
    return model


def _models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in get_args(annotation):
        yield from _models_in(argument)


def _unknown(what: str, name: str, known: Iterable[str], of: str = "") -> str:
    names = sorted(known)
    close = difflib.get_close_matches(name.lower().rpartition(".")[2], names, n=1)
    hint = f"; did you mean {close[0]!r}?" if close else ""
    listed = ", ".join(names) if names else "none"
    return f"unknown {what} {name!r}{of}; known {what}s: {listed}{hint}"


def _resolved(config: Mapping[str, Any], references: References, where: str) -> dict[str, Any]:
    """``config`` with references replaced; what comes out is never kept or shown."""
    try:
        return {name: references.resolve(value) for name, value in config.items()}
    except ReferenceWithoutValueError as error:
        raise ConnectorFailure(f"{where}: {error}") from error
