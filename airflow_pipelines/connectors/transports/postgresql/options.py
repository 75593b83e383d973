"""The options of the connectors of PostgreSQL."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

_SLOT = re.compile(r"[a-z0-9_]{1,63}")


class ConnectionOptions(BaseModel):
    """The options for the connection to the server.

    :param uri: ``postgresql://user:password@host:5432/database``
    :param ssl_ca_pem: the CA certificates against which the server's certificate is checked, as text
    :param ssl_ca_location: the file that contains them
    :param ssl_client_pem: the certificate of the client, as text
    :param ssl_client_location: the file that contains it
    :param ssl_client_key: the private key of the client, as text
    :param ssl_client_key_location: the file that contains it
    :param verify_hostname: True if the server's certificate must be for the name in ``uri``
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    uri: str = Field(min_length=1)
    ssl_ca_pem: str | None = None
    ssl_ca_location: str | None = None
    ssl_client_pem: str | None = None
    ssl_client_location: str | None = None
    ssl_client_key: str | None = None
    ssl_client_key_location: str | None = None
    verify_hostname: bool = True

    @field_validator("uri")
    @classmethod
    def _scheme(cls, value: str) -> str:
        if not value.startswith(("postgresql://", "postgres://", "${")):
            raise ValueError("a URI begins with postgresql://, as in postgresql://user:password@host:5432/database")
        return value

    @model_validator(mode="after")
    def _text_or_file(self) -> Self:
        for text, file in (
            ("ssl_ca_pem", "ssl_ca_location"),
            ("ssl_client_pem", "ssl_client_location"),
            ("ssl_client_key", "ssl_client_key_location"),
        ):
            if getattr(self, text) is not None and getattr(self, file) is not None:
                raise ValueError(f"{text} and {file} say the same: give one of them")
        return self


class InvalidValues(StrEnum):
    """The treatment of values that the type of their column does not have, such as a date that is infinite."""

    REFUSE = "refuse"
    """A malformed row, which is left out."""
    NULL = "null"
    """NULL in place of the values, where the column may be NULL."""


class PostgresInputOptions(ConnectionOptions):
    """The options of ``postgres_input``.

    :param query: a SELECT, whose columns are those of the table by name
    :param invalid_values: the treatment of values that the type of their column does not have
    """

    invalid_values: InvalidValues = InvalidValues.REFUSE

    query: str = Field(min_length=1)

    @field_validator("query")
    @classmethod
    def _one_statement(cls, value: str) -> str:
        return value.strip().rstrip(";").rstrip()


class PostgresCdcInputOptions(ConnectionOptions):
    """The options of ``postgres_cdc_input``.

    :param publication: the publication that has the table
    :param source_table: the table, with its schema where that is not ``public``
    :param slot: the name of the replication slot; None for one that is made from the pipeline's and the connector's names
    :param snapshot: True to begin with the rows that are in the table
    :param snapshot_if_data_expires: True to read them again, in place of the earlier ones, when changes were lost
    :param invalid_values: the treatment of values that the type of their column does not have
    """

    invalid_values: InvalidValues = InvalidValues.REFUSE
    publication: str = Field(min_length=1)
    source_table: str = Field(min_length=1)
    slot: str | None = None
    snapshot: bool = True
    snapshot_if_data_expires: bool = False

    @field_validator("slot")
    @classmethod
    def _name_of_slot(cls, value: str | None) -> str | None:
        if value is not None and not _SLOT.fullmatch(value):
            raise ValueError("a slot's name has lower-case letters, digits and underscores, 63 at most")
        return value

    @model_validator(mode="after")
    def _rows_again(self) -> Self:
        if self.snapshot_if_data_expires and not self.snapshot:
            raise ValueError(
                "'snapshot_if_data_expires' is for inputs that begin with the rows of the table: leave 'snapshot' true"
            )
        return self


class OutputMode(StrEnum):
    """The use that an output makes of its table."""

    MATERIALIZED = "materialized"
    """A table that equals the view."""
    CDC = "cdc"
    """A table that is a log of the changes."""


class PostgresOutputOptions(ConnectionOptions):
    """The options of ``postgres_output``.

    :param table: the table, with its schema where that is not the first of the user's search path
    :param mode: the use of the table
    :param cdc_op_column: the column of a log that has the operation: ``i``, ``u`` or ``d``
    :param cdc_ts_column: the column of a log by which changes are ordered
    :param on_conflict_do_nothing: True if a new row whose key is in the table already leaves that row as it is
    :param threads: accepted, without effect: a step is one transaction, and so needs one connection
    """

    table: str = Field(min_length=1)
    mode: OutputMode = OutputMode.MATERIALIZED
    cdc_op_column: str = Field(default="__op", min_length=1)
    cdc_ts_column: str = Field(default="__ts", min_length=1)
    on_conflict_do_nothing: bool = False
    threads: int = Field(default=1, ge=1)

    @model_validator(mode="after")
    def _modes(self) -> Self:
        if self.mode is OutputMode.CDC and self.on_conflict_do_nothing:
            raise ValueError("on_conflict_do_nothing is for mode 'materialized': a log has no keys that could conflict")
        return self
