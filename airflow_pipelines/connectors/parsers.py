"""Makes the parsers of formats."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

from airflow_pipelines.connectors.built_in import BUILT_IN_FORMATS
from airflow_pipelines.connectors.option_models import read_options, unknown
from airflow_pipelines.connectors.registry import find_format, format_names
from airflow_pipelines.rows.formats.defaults import Now, wall_clock
from airflow_pipelines.rows.formats.definition import FormatDefinition
from airflow_pipelines.rows.formats.option_errors import InvalidOptionError, UnknownOptionError
from airflow_pipelines.rows.formats.parsed import Parser, RecordProblem
from airflow_pipelines.rows.schema import RelationSchema


def input_parser(schema: RelationSchema, format_name: str, config: Mapping[str, Any], where: str, now: Now = wall_clock) -> Parser:
    """A parser for one stream of a format, by its name and options as they were given.

    :param schema: of the table that the rows are for
    :param format_name: the format
    :param config: its options
    :param where: what is being set up, for messages
    :param now: the clock that a DEFAULT may read
    :raises UnknownOptionError: for an unknown format or option, a bad value, or a column type that no input can fill
    """
    definition = find_format(format_name)
    if definition is None:
        raise UnknownOptionError(f"{where}: {unknown('format', format_name, format_names())}")
    options = read_options(definition.options, config, f"format {format_name!r}", where)
    return new_parser(definition, schema, options, where, now)


def options_of_format(format_name: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Options without those that only other formats of this package have.

    :param format_name: the format
    :param given: options by name
    """
    fields = {name: _fields_of(name) for name in {*BUILT_IN_FORMATS, format_name}}
    others = frozenset().union(*fields.values()) - fields[format_name]
    return {name: value for name, value in given.items() if name not in others}


def new_parser(definition: FormatDefinition, schema: RelationSchema, options: BaseModel, where: str, now: Now) -> Parser:
    """A parser for one stream of a format.

    :param definition: of the format
    :param schema: of the table that the rows are for
    :param options: those of the format
    :param where: what is being set up, for messages
    :param now: the clock that a DEFAULT may read
    :raises InvalidOptionError: for a format that can only be written, options with which it cannot be read, or a column that no
        input can fill
    """
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
    definition = find_format(format_name)
    return frozenset() if definition is None else frozenset(definition.options.model_fields)
