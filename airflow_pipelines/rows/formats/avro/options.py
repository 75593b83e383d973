"""The options of the Avro format. Files have their schema and need no options."""

from __future__ import annotations

import json
from typing import ClassVar

from pydantic import Field, field_validator

from airflow_pipelines.rows.formats.option_errors import InvalidOptionError
from airflow_pipelines.rows.formats.registered.options import NAME, RegisteredOptions, invalid_option


class AvroOptions(RegisteredOptions):
    """Options of the Avro format; all of them are for messages.

    :param definition: the schema of the messages (``schema``), as JSON
    :param namespace: the namespace of the schemas that an output makes
    """

    format_name: ClassVar[str] = "avro"
    only_written: ClassVar[tuple[str, ...]] = (*RegisteredOptions.only_written, "namespace")

    definition: str | None = Field(default=None, alias="schema")
    namespace: str | None = Field(default=None, pattern=rf"^{NAME}(\.{NAME})*$")

    @field_validator("definition")
    @classmethod
    def _is_json(cls, value: str | None) -> str | None:
        if value is not None and not value.startswith("${"):
            try:
                json.loads(value)
            except ValueError as error:
                raise ValueError(f"a schema of Avro is written as JSON: {error}") from None
        return value


def check_messages_read(options: AvroOptions) -> None:
    """Reject options that do not locate the schema of messages.

    :param options: the options of an input that reads messages
    :raises InvalidOptionError: when they do not, or in two ways
    """
    if bool(options.registry_urls) == (options.definition is not None):
        raise InvalidOptionError(
            "format 'avro' needs 'registry_urls', where the schemas of the messages are, or 'schema', which is that of all, "
            "and not both",
            "avro",
        )
    if options.skip_schema_id and options.definition is None:
        raise invalid_option(options, "messages without the number of a schema need 'schema'", "skip_schema_id")
