"""The shared options of formats whose messages begin with the number of a schema in a registry."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from airflow_pipelines.rows.formats.option_errors import InvalidOptionError

NAME: Final = r"[A-Za-z_][A-Za-z0-9_]*"
"""The pattern of names of schemas, and of names in them."""
_OF_REGISTRY: Final = ("headers", "proxy", "timeout_secs", "username", "password", "authorization_token")


class RegisteredOptions(BaseModel):
    """Options of a format whose messages have their schemas in a registry.

    :param update_format: the form of a message: a row (``raw``), a change in Debezium's form (``debezium``, inputs), or a row by
        its key in the form of Confluent's JDBC sink (``confluent_jdbc``, outputs)
    :param skip_schema_id: True if messages do not begin with the number of their schema
    :param key_mode: the content of the key of a message that an output writes: the columns of its index, or nothing
    :param cdc_field: a field in the output with the operation on the row, I (insert), U (update) or D (delete)
    :param subject_name_strategy: the strategy for the subjects under which an output registers its schemas
    :param registry_urls: the URLs of a schema registry; the next one is asked if one is not available
    :param registry_headers: the headers of each request to it
    :param registry_proxy: the URL of the proxy for these requests
    :param registry_timeout_secs: the timeout of a request in seconds
    :param registry_username: the user, for authentication with a password
    :param registry_password: the password
    :param registry_authorization_token: the token, for authentication with a token
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    format_name: ClassVar[str]
    """The name of the format in programs."""
    only_written: ClassVar[tuple[str, ...]] = ("cdc_field", "key_mode", "subject_name_strategy")
    """The options that only outputs have."""

    update_format: Literal["raw", "debezium", "confluent_jdbc"] = "raw"
    skip_schema_id: bool = False
    key_mode: Literal["none", "key_fields"] | None = None
    cdc_field: str | None = Field(default=None, pattern=f"^{NAME}$")
    subject_name_strategy: Literal["topic_name", "record_name", "topic_record_name"] | None = None
    registry_urls: tuple[str, ...] = ()
    registry_headers: Mapping[str, str] = Field(default_factory=dict, repr=False)
    registry_proxy: str | None = None
    registry_timeout_secs: float | None = Field(default=None, gt=0, le=600)
    registry_username: str | None = None
    registry_password: str | None = Field(default=None, repr=False)
    registry_authorization_token: str | None = Field(default=None, repr=False)

    @field_validator("registry_urls")
    @classmethod
    def _are_urls(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if not all(url.startswith(("http://", "https://", "${")) for url in value):
            raise ValueError("they must be URLs of HTTP servers, such as http://host:8081")
        return value

    @model_validator(mode="after")
    def _fit_together(self) -> RegisteredOptions:
        if not self.registry_urls:
            for name in _OF_REGISTRY:
                if getattr(self, f"registry_{name}"):
                    raise ValueError(f"'registry_{name}' needs 'registry_urls'")
        if self.registry_authorization_token and (self.registry_username or self.registry_password):
            raise ValueError("a registry is asked with 'registry_authorization_token' or with a user's name and password, not both")
        if self.registry_password and not self.registry_username:
            raise ValueError("'registry_password' needs 'registry_username'")
        if self.cdc_field is not None and self.update_format != "raw":
            raise ValueError(
                f"'cdc_field' is for 'update_format' 'raw', and messages of {self.update_format!r} have no place for it"
            )
        return self

    def subject(self, name: str, topic: str, part: str) -> str:
        """Return the subject under which an output registers a schema.

        :param name: the full name of the type that the schema describes
        :param topic: the topic of its messages
        :param part: ``key`` or ``value``
        """
        strategy = self.subject_name_strategy or ("topic_name" if self.update_format == "confluent_jdbc" else "record_name")
        return {"topic_name": f"{topic}-{part}", "record_name": name, "topic_record_name": f"{topic}-{name}"}[strategy]


def check_read(options: RegisteredOptions) -> None:
    """Reject options that only outputs have.

    :param options: the options of an input
    :raises InvalidOptionError: when there is one
    """
    if options.update_format == "confluent_jdbc":
        raise invalid_option(options, "'confluent_jdbc' can be written and not read; use 'raw' or 'debezium'", "update_format")
    for name in options.only_written:
        if getattr(options, name) is not None:
            raise invalid_option(options, "it is for outputs", name)


def check_written(options: RegisteredOptions) -> None:
    """Reject options that an output cannot have.

    :param options: the options of an output
    :raises InvalidOptionError: when there is one
    """
    if options.update_format == "debezium":
        raise invalid_option(options, "'debezium' can be read and not written; use 'raw' or 'confluent_jdbc'", "update_format")


def check_messages_written(options: RegisteredOptions, has_index: bool) -> None:
    """Reject options with which no messages can be written.

    :param options: the options of an output that writes messages
    :param has_index: True if it names an index
    :raises InvalidOptionError: when there is one
    """
    check_written(options)
    if has_index:
        return
    if options.update_format == "confluent_jdbc":
        raise invalid_option(
            options, "'confluent_jdbc' needs an 'index', whose columns are the key of each message", "update_format"
        )
    if options.key_mode == "key_fields":
        raise invalid_option(options, "'key_fields' needs an 'index', whose columns are the key of each message", "key_mode")


def invalid_option(options: RegisteredOptions, reason: str, option: str) -> InvalidOptionError:
    """Return the error for an invalid option, with its format.

    :param options: the options of the format
    :param reason: the problem
    :param option: the name of the option
    """
    return InvalidOptionError(f"option {option!r} of format {options.format_name!r}: {reason}", option)
