"""Factories of the parsers of formats."""

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
    """Return a parser for one stream of a format, given its name and options.

    :param schema: the schema of the table that the rows are for
    :param format_name: the name of the format
    :param config: the options of the format
    :param where: the object that is being set up, for messages
    :param now: the clock that a DEFAULT may read
    :raises UnknownOptionError: if a format or option is unknown, a value is invalid, or no input can fill a column type
    """
    definition = find_format(format_name)
    if definition is None:
        raise UnknownOptionError(f"{where}: {unknown('format', format_name, format_names())}")
    options = read_options(definition.options, config, f"format {format_name!r}", where)
    return new_parser(definition, schema, options, where, now)


def options_of_format(format_name: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return options without those that only other formats of this package have.

    :param format_name: the name of the format
    :param given: options by name
    """
    fields = {name: _find_fields(name) for name in {*BUILT_IN_FORMATS, format_name}}
    others = frozenset().union(*fields.values()) - fields[format_name]
    return {name: value for name, value in given.items() if name not in others}


def new_parser(definition: FormatDefinition, schema: RelationSchema, options: BaseModel, where: str, now: Now) -> Parser:
    """Return a parser for one stream of a format.

    :param definition: the definition of the format
    :param schema: the schema of the table that the rows are for
    :param options: the options of the format
    :param where: the object that is being set up, for messages
    :param now: the clock that a DEFAULT may read
    :raises InvalidOptionError: if the format can only be written, the options do not allow reading, or no input can fill a column
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


def _find_fields(format_name: str) -> frozenset[str]:
    definition = find_format(format_name)
    return frozenset() if definition is None else frozenset(definition.options.model_fields)
