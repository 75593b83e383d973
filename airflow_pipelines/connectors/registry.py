"""Which connectors and formats there are, and how a declaration becomes a working one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from pydantic import BaseModel

from airflow_pipelines.connectors.base import ConnectorFailure, InputTransport, OutputTransport
from airflow_pipelines.connectors.built_in import BUILT_IN_FORMATS, BUILT_IN_INPUTS, BUILT_IN_OUTPUTS
from airflow_pipelines.connectors.common_options import ConnectorOptions
from airflow_pipelines.connectors.definition import (
    ConnectorDefinition,
    Declared,
    Delivery,
    InputContext,
    InputDefinition,
    OutputContext,
    OutputDefinition,
    PipelineReference,
)
from airflow_pipelines.connectors.formats.defaults import Now, wall_clock
from airflow_pipelines.connectors.formats.definition import Encoder, FormatDefinition
from airflow_pipelines.connectors.formats.parsed import Parser, RecordProblem
from airflow_pipelines.connectors.lookup import Lookup
from airflow_pipelines.connectors.option_errors import InvalidOptionError, UnknownOptionError
from airflow_pipelines.connectors.option_models import read_declared_options, read_options, unknown
from airflow_pipelines.connectors.planned_transports import PLANNED_TRANSPORTS
from airflow_pipelines.connectors.transports.stream_source import StreamSource, StreamSourceOptions
from airflow_pipelines.engine.schema import RelationSchema
from airflow_pipelines.engine.storage.fence import Fence
from airflow_pipelines.program.connectors import Connector, ConnectorDirection
from airflow_pipelines.program.streams import STREAM_SOURCE
from airflow_pipelines.references import References, ReferenceWithoutValueError, has_reference
from airflow_pipelines.streams.reading.client import ReadingProcess

CONNECTORS_OF_OTHERS: Final = "airflow_pipelines.connectors"
"""The group of entry points by which other packages add connectors."""
FORMATS_OF_OTHERS: Final = "airflow_pipelines.formats"
"""The group of entry points by which other packages add formats."""

_CONNECTORS: Final[Lookup[ConnectorDefinition]] = Lookup(
    "transport", (InputDefinition, OutputDefinition), {**BUILT_IN_INPUTS, **BUILT_IN_OUTPUTS}, CONNECTORS_OF_OTHERS
)
_FORMATS: Final[Lookup[FormatDefinition]] = Lookup("format", (FormatDefinition,), BUILT_IN_FORMATS, FORMATS_OF_OTHERS)


def find_connector(transport: str) -> ConnectorDefinition | None:
    """The definition of a connector of this release, or of another package; None when there is none.

    :param transport: the name of its transport
    :raises UnknownOptionError: when another package says that it has it, and it cannot be imported
    """
    return _CONNECTORS.find(transport)


def connector_names() -> frozenset[str]:
    """The names of all connectors, those of other packages included."""
    return _CONNECTORS.names()


def find_format(name: str) -> FormatDefinition | None:
    """The definition of a format of this release, or of another package; None when there is none.

    :param name: the format's name
    :raises UnknownOptionError: when another package says that it has it, and it cannot be imported
    """
    return _FORMATS.find(name)


def format_names() -> frozenset[str]:
    """The names of all formats, those of other packages included."""
    return _FORMATS.names()


def validate(connector: Connector, schema: RelationSchema) -> None:
    """Check a declaration: names, options, their values, and whether the format can read the relation's columns.

    :raises UnknownOptionError: naming what is wrong and what there is instead; :class:`InvalidOptionError`, a subclass, when the
        name is known but the value, the direction or the combination is not allowed
    """
    where = _where(connector)
    definition = _definition_for(connector, where)
    common = connector_options(connector)
    if connector.direction is ConnectorDirection.INPUT and common.soft_delete and schema.primary_key:
        raise InvalidOptionError(f"{where}: option 'soft_delete' is not for a table with a primary key", "soft_delete")
    if definition is None:
        return
    of = f"transport {connector.transport!r}"
    options = read_declared_options(definition.options, connector.transport_config, of, where)
    format_options = _checked_format(connector, definition, schema, where) if definition.formats else None
    if isinstance(definition, OutputDefinition) and definition.needs_index and common.index is None:
        message = f"{of} needs an 'index', by whose columns it tells which rows are the same. Name one that CREATE INDEX makes"
        raise InvalidOptionError(f"{where}: {message}")
    if definition.check is not None and options is not None:
        _run_check(definition.check, options, connector, schema, format_options, where)


def check_start(connector: Connector, schema: RelationSchema) -> None:
    """Check what a declaration that compiles needs for a start.

    :raises InvalidOptionError: when the connector cannot work as declared, or what it needs is not installed
    """
    definition = find_connector(connector.transport)
    if definition is None:
        return
    missing = _missing_packages(definition)
    if missing is not None:
        raise InvalidOptionError(missing)
    if definition.check_start is not None:
        where = _where(connector)
        options = read_declared_options(definition.options, connector.transport_config, f"transport {connector.transport!r}", where)
        if options is not None:
            definition.check_start(options, _declared(connector, schema, _format_options(connector, where)))


def formats_of(transport: str) -> tuple[str, ...]:
    """The formats that a transport can carry; none for one that needs none.

    :param transport: its name
    """
    definition = find_connector(transport)
    return () if definition is None else definition.formats


def delivery_of(connector: Connector) -> Delivery:
    """When an output gets the changes of a step.

    :param connector: its declaration
    """
    definition = find_connector(connector.transport)
    if not isinstance(definition, OutputDefinition):
        return Delivery.QUEUED
    return definition.delivery if definition.delivery_of is None else definition.delivery_of(connector.transport_config)


def is_seekable(transport: str) -> bool:
    """Whether an input can be opened in the middle.

    :param transport: the name of its transport
    """
    definition = find_connector(transport)
    return not isinstance(definition, InputDefinition) or definition.seekable


def check_written(connector: Connector) -> None:
    """Check that the format of an output can be written with its options.

    :raises UnknownOptionError: when it cannot
    """
    definition = _format_of(connector)
    options = _format_options(connector, _where(connector))
    if definition is not None and definition.check_written is not None and options is not None:
        definition.check_written(options)


def connector_options(connector: Connector) -> ConnectorOptions:
    """The options of a connector that do not depend on its transport.

    :raises UnknownOptionError: like :func:`validate`
    """
    return read_options(ConnectorOptions, connector.options, "", _where(connector))


def open_input(
    connector: Connector, schema: RelationSchema, references: References, pipeline: PipelineReference, now: Now = wall_clock
) -> InputTransport:
    """The input that a declaration describes; it is not opened yet.

    :param references: what references in its options stand for
    :param pipeline: the pipeline that it is an input of
    :param now: the clock that a DEFAULT may read
    :raises UnknownOptionError: like :func:`validate`
    :raises ConnectorFailure: when a reference has no value, or what it stands for is no value of its option
    """
    validate(connector, schema)
    ready = _resolved(connector, references)
    if not isinstance(ready.definition, InputDefinition):
        raise ConnectorFailure(f"{_where(connector)}: transport {connector.transport!r} is not an input")
    _check_resolved(connector, schema, ready)
    context = InputContext(
        endpoint=connector.endpoint,
        schema=schema,
        format=ready.format_name,
        new_parser=lambda: _new_parser(connector, schema, ready, now),
        now=now,
        pipeline=pipeline,
        common=connector_options(connector),
    )
    return ready.definition.open(ready.options, context)


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
    pipeline: PipelineReference,
    key: tuple[str, ...] = (),
    positions: Path | None = None,
    fence: Fence | None = None,
) -> OutputTransport:
    """The output that a declaration describes; it is not opened yet.

    :param references: what references in its options stand for
    :param pipeline: the pipeline that it is an output of
    :param key: the columns of its index
    :param positions: a folder of the pipeline's storage in which outputs keep how far they are; None without storage
    :param fence: the epoch of the run in that storage, after which outputs write nothing more
    :raises UnknownOptionError: like :func:`validate`
    :raises ConnectorFailure: when a reference has no value, or what it stands for is no value of its option
    """
    validate(connector, schema)
    ready = _resolved(connector, references)
    if not isinstance(ready.definition, OutputDefinition):
        raise ConnectorFailure(f"{_where(connector)}: transport {connector.transport!r} is not an output")
    _check_resolved(connector, schema, ready)
    context = OutputContext(
        endpoint=connector.endpoint,
        schema=schema,
        key=key,
        format=ready.format_name,
        format_options=ready.format_options,
        new_encoder=lambda: _new_encoder(connector, schema, ready),
        positions=positions / f"{quote(connector.endpoint, safe='')}.steps" if positions is not None else None,
        fence=fence,
        pipeline=pipeline,
        common=connector_options(connector),
    )
    return ready.definition.open(ready.options, context)


def input_parser(schema: RelationSchema, format_name: str, config: Mapping[str, Any], where: str, now: Now = wall_clock) -> Parser:
    """A parser for one stream of a format.

    :param where: what is being set up, for messages
    :param now: the clock that a DEFAULT may read
    :raises UnknownOptionError: for an unknown format or option, a bad value, or a column type that no input can fill
    """
    definition = _FORMATS.find(format_name)
    if definition is None:
        raise UnknownOptionError(f"{where}: {unknown('format', format_name, _FORMATS.names())}")
    options = read_options(definition.options, config, f"format {format_name!r}", where)
    return _parser(definition, schema, options, where, now)


def options_of_format(format_name: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Options without those that only other formats of this package have.

    :param format_name: the format
    :param given: options by name
    """
    fields = {name: _fields_of(name) for name in {*BUILT_IN_FORMATS, format_name}}
    others = frozenset().union(*fields.values()) - fields[format_name]
    return {name: value for name, value in given.items() if name not in others}


@dataclass(frozen=True, slots=True)
class _Ready:
    """A declaration with its references replaced; never kept or shown."""

    definition: ConnectorDefinition
    options: BaseModel
    format: FormatDefinition | None
    format_options: BaseModel | None

    @property
    def format_name(self) -> str | None:
        return None if self.format is None else self.format.name


def _where(connector: Connector) -> str:
    return f"connector {connector.endpoint!r}"


def _definition_for(connector: Connector, where: str) -> ConnectorDefinition | None:
    """The definition of a connector that goes the way its declaration says; None for one that is planned."""
    if connector.transport == STREAM_SOURCE:
        message = f"transport {STREAM_SOURCE!r} is what reads the sources of stream programs, and cannot be declared"
        raise InvalidOptionError(f"{where}: {message}", STREAM_SOURCE)
    definition = find_connector(connector.transport)
    found = definition or PLANNED_TRANSPORTS.get(connector.transport)
    if found is None:
        message = unknown("transport", connector.transport, _usable(connector.direction))
        raise UnknownOptionError(f"{where}: {message}", connector.transport)
    if found.direction is not connector.direction:
        goes, is_on = ("an output", "a table") if connector.direction is ConnectorDirection.INPUT else ("an input", "a view")
        known = ", ".join(sorted(_usable(connector.direction)))
        raise InvalidOptionError(
            f"{where}: transport {connector.transport!r} is {goes}, but the connector is on {is_on}; "
            f"known transports here: {known}",
            connector.transport,
        )
    return definition


def _usable(direction: ConnectorDirection) -> frozenset[str]:
    """The names of the connectors that go one way."""
    own = BUILT_IN_INPUTS if direction is ConnectorDirection.INPUT else BUILT_IN_OUTPUTS
    return frozenset({*own, *(name for name in _CONNECTORS.names() if _CONNECTORS.of_others(name) and _goes(name, direction))})


def _goes(name: str, direction: ConnectorDirection) -> bool:
    try:
        definition = find_connector(name)
    except UnknownOptionError:
        # It is not usable; whoever names it is told why.
        return False
    return definition is not None and definition.direction is direction


def _checked_format(connector: Connector, definition: ConnectorDefinition, schema: RelationSchema, where: str) -> BaseModel | None:
    formats = definition.formats
    if connector.format is None:
        listed = ", ".join(formats)
        raise InvalidOptionError(f"{where}: transport {connector.transport!r} needs a format; known formats: {listed}")
    if connector.format not in formats:
        if connector.format in _FORMATS.names():
            # It may be a format of this transport in another release.
            return None
        raise UnknownOptionError(f"{where}: {unknown('format', connector.format, formats)}", connector.format)
    found, options = _format_of(connector), _format_options(connector, where)
    if connector.direction is ConnectorDirection.INPUT and found is not None and options is not None:
        _parser(found, schema, options, where, wall_clock)
    return options


def _format_of(connector: Connector) -> FormatDefinition | None:
    """The format of a connector whose transport carries it."""
    return _FORMATS.find(connector.format) if connector.format in formats_of(connector.transport) else None


def _format_options(connector: Connector, where: str) -> BaseModel | None:
    """The options of the format of a connector whose transport carries it; None for any other, and while they are not known."""
    found = _format_of(connector)
    if found is None:
        return None
    return read_declared_options(found.options, connector.format_config, f"format {found.name!r}", where)


def _declared(connector: Connector, schema: RelationSchema, format_options: BaseModel | None) -> Declared:
    return Declared(connector.endpoint, schema, connector_options(connector), connector.format, format_options)


def _run_check(
    check: Callable[[Any, Declared], None],
    options: BaseModel,
    connector: Connector,
    schema: RelationSchema,
    format_options: BaseModel | None,
    where: str,
) -> None:
    try:
        check(options, _declared(connector, schema, format_options))
    except InvalidOptionError as error:
        raise InvalidOptionError(f"{where}: {error}", error.word) from error


def _missing_packages(definition: ConnectorDefinition) -> str | None:
    """What is missing for a connector, and how to get it."""
    missing = [package for package in definition.packages if not _is_installed(package)]
    if not missing:
        return None
    of = f"transport {definition.name!r}"
    how = f"pip install 'airflow-pipelines[{definition.extra}]'" if definition.extra else f"install {', '.join(missing)}"
    return f"{of} needs a package that is not installed where the pipeline runs ({', '.join(missing)}); {how}"


def _is_installed(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except ModuleNotFoundError:
        return False


def _resolved(connector: Connector, references: References) -> _Ready:
    """A declaration with its references replaced."""
    where = _where(connector)
    definition = find_connector(connector.transport)
    if definition is None:
        raise ConnectorFailure(f"{where}: transport {connector.transport!r} is not part of this release")
    if (missing := _missing_packages(definition)) is not None:
        raise ConnectorFailure(f"{where}: {missing}")
    found = _format_of(connector)
    try:
        options = read_options(
            definition.options, references.resolve(connector.transport_config), f"transport {connector.transport!r}", where
        )
        format_options = (
            None
            if found is None
            else read_options(found.options, references.resolve(connector.format_config), f"format {found.name!r}", where)
        )
    except ReferenceWithoutValueError as error:
        raise ConnectorFailure(f"{where}: {error}") from error
    except UnknownOptionError as error:
        raise ConnectorFailure(str(error)) from error
    return _Ready(definition, options, found, format_options)


def _check_resolved(connector: Connector, schema: RelationSchema, ready: _Ready) -> None:
    """Check again what references stand for.

    :raises ConnectorFailure: when the declaration cannot work with that
    """
    if ready.definition.check is None or not has_reference(connector.transport_config):
        return
    try:
        _run_check(ready.definition.check, ready.options, connector, schema, ready.format_options, _where(connector))
    except InvalidOptionError as error:
        raise ConnectorFailure(str(error)) from error


def _new_parser(connector: Connector, schema: RelationSchema, ready: _Ready, now: Now) -> Parser:
    if ready.format is None or ready.format_options is None:
        raise ConnectorFailure(f"{_where(connector)}: transport {connector.transport!r} reads no format")
    return _parser(ready.format, schema, ready.format_options, _where(connector), now)


def _new_encoder(connector: Connector, schema: RelationSchema, ready: _Ready) -> Encoder:
    if ready.format is None or ready.format.new_encoder is None:
        raise ConnectorFailure(f"{_where(connector)}: transport {connector.transport!r} has no format that can be written")
    return ready.format.new_encoder(schema, ready.format_options)


def _parser(definition: FormatDefinition, schema: RelationSchema, options: BaseModel, where: str, now: Now) -> Parser:
    if definition.new_parser is None:
        raise InvalidOptionError(f"{where}: format {definition.name!r} can be written and not read")
    try:
        if definition.check_read is not None:
            definition.check_read(options)
        return definition.new_parser(schema, options, now)
    except InvalidOptionError as error:
        raise InvalidOptionError(f"{where}: {error}", error.word) from error
    except RecordProblem as problem:
        raise InvalidOptionError(f"{where}: {problem}") from problem


def _fields_of(format_name: str) -> frozenset[str]:
    definition = _FORMATS.find(format_name)
    return frozenset() if definition is None else frozenset(definition.options.model_fields)
