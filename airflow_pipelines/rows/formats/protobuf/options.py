"""The options of the Protobuf format, which is for messages."""

from __future__ import annotations

import base64
import binascii
from typing import ClassVar

from pydantic import Field, field_validator, model_validator

from airflow_pipelines.rows.formats.option_errors import InvalidOptionError
from airflow_pipelines.rows.formats.registered.options import NAME, RegisteredOptions, invalid_option

_NAMES = rf"^{NAME}(\.{NAME})*$"


class ProtobufOptions(RegisteredOptions):
    """Options of the Protobuf format.

    :param descriptor_set: the types of messages: a FileDescriptorSet in base64, the output of ``protoc --include_imports -o FILE``
    :param descriptor_file: the path of a file with such a set, where the pipeline runs
    :param message: the full name of the type of all messages, which is in that set
    :param package: the package of the types that an output makes
    """

    format_name: ClassVar[str] = "protobuf"
    only_written: ClassVar[tuple[str, ...]] = (*RegisteredOptions.only_written, "package")

    descriptor_set: str | None = Field(default=None, min_length=1)
    descriptor_file: str | None = Field(default=None, min_length=1)
    message: str | None = Field(default=None, pattern=_NAMES)
    package: str | None = Field(default=None, pattern=_NAMES)

    @property
    def has_types(self) -> bool:
        """True if the options define the types of messages."""
        return self.descriptor_set is not None or self.descriptor_file is not None

    @field_validator("descriptor_set")
    @classmethod
    def _is_base64(cls, value: str | None) -> str | None:
        if value is not None and not value.startswith("${"):
            try:
                base64.b64decode(value, validate=True)
            except binascii.Error as error:
                raise ValueError(f"a FileDescriptorSet is written in base64: {error}") from None
        return value

    @model_validator(mode="after")
    def _one_type(self) -> ProtobufOptions:
        if self.descriptor_set is not None and self.descriptor_file is not None:
            raise ValueError("the types of messages are in 'descriptor_set' or in 'descriptor_file', not in both")
        if self.has_types and self.message is None:
            raise ValueError("'message' is missing: the full name of the type of all messages, such as 'shop.Order'")
        if self.message is not None and not self.has_types:
            raise ValueError("'message' needs 'descriptor_set' or 'descriptor_file', in which that type is")
        if self.message is not None and self.package is not None:
            raise ValueError("'package' is for types that are made for a view, and 'message' names another one")
        return self


def check_messages_read(options: ProtobufOptions) -> None:
    """Reject options that do not locate the types of messages.

    :param options: the options of an input that reads messages
    :raises InvalidOptionError: when they do not, or in two ways
    """
    if bool(options.registry_urls) == options.has_types:
        raise InvalidOptionError(
            "format 'protobuf' needs 'registry_urls', where the types of the messages are, or 'descriptor_set' or "
            "'descriptor_file' with the one of all, and not both",
            "protobuf",
        )
    if options.skip_schema_id and not options.has_types:
        raise invalid_option(
            options, "messages without the number of a schema need 'descriptor_set' or 'descriptor_file'", "skip_schema_id"
        )
