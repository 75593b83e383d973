"""The options that identify a connector's table, and give access to its catalog and its files."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, Field, model_validator

_OF_CATALOGS: Final[Mapping[str, frozenset[str]]] = {
    "rest": frozenset(
        {
            "audience",
            "credential",
            "oauth2-server-uri",
            "prefix",
            "resource",
            "scope",
            "signing-name",
            "signing-region",
            "sigv4-enabled",
            "token",
            "uri",
            "warehouse",
        }
    ),
    "glue": frozenset(
        {
            "access-key-id",
            "endpoint",
            "id",
            "max-retries",
            "profile-name",
            "region",
            "secret-access-key",
            "session-token",
            "skip-archive",
            "warehouse",
        }
    ),
    "sql": frozenset({"uri", "warehouse"}),
}
_OF_FILES: Final = ("s3.", "gcs.", "adls.", "hf.", "hdfs.")
"""The prefixes of the options that pyiceberg takes for files."""


class CatalogType(Enum):
    """The catalog that keeps the names of tables."""

    REST = "rest"
    """A server that speaks the REST protocol of Iceberg."""
    SQL = "sql"
    """A database: SQLite or PostgreSQL."""
    GLUE = "glue"
    """The catalog AWS Glue."""


class IcebergOptions(BaseModel):
    """The options that inputs and outputs have in common.

    :param catalog_type: the type of the catalog that keeps the table's name
    :param catalog_name: the catalog's own name, which matters to databases that hold several
    :param table_name: the table with its namespace, such as ``sales.orders``
    :param properties: the access to catalog and files; gathered from ``rest.*``, ``sql.*``, ``glue.*``, ``s3.*`` and their like
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    catalog_type: CatalogType | None = None
    catalog_name: str = Field(default="default", min_length=1)
    table_name: str | None = Field(default=None, pattern=r"^[^.]+(\.[^.]+)+$")
    properties: Mapping[str, str] = Field(default_factory=dict, repr=False)

    @model_validator(mode="before")
    @classmethod
    def _gather(cls, given: Any) -> Any:
        if not isinstance(given, dict):
            return given
        if "properties" in given:
            raise ValueError("'properties' is no option; give rest.*, sql.*, glue.*, s3.* and their like beside 'table_name'")
        beside = {name: _text(value) for name, value in given.items() if _is_property(name)}
        rest = {name: value for name, value in given.items() if name not in beside}
        return {**rest, "properties": beside} if beside else rest

    @model_validator(mode="after")
    def _of_one_catalog(self) -> IcebergOptions:
        kind = None if self.catalog_type is None else self.catalog_type.value
        foreign = [name for name in self.properties if (of := name.partition(".")[0]) in _OF_CATALOGS and of != kind]
        if foreign:
            raise ValueError(f"{foreign[0]!r} is not for catalog_type {kind!r}" if kind else f"{foreign[0]!r} needs a catalog_type")
        if kind in ("rest", "sql") and f"{kind}.uri" not in self.properties:
            raise ValueError(f"catalog_type {kind!r} needs '{kind}.uri'")
        return self

    def catalog_properties(self) -> dict[str, str]:
        """Return the properties with which pyiceberg opens the catalog."""
        kind = self.catalog_type
        if kind is None:
            return self.file_properties()
        own = f"{kind.value}."
        renamed = {
            name.removeprefix(own) if kind is not CatalogType.GLUE or name == "glue.warehouse" else name: value
            for name, value in self.properties.items()
            if name.startswith(own)
        }
        return {"type": kind.value, **self.file_properties(), **renamed}

    def file_properties(self) -> dict[str, str]:
        """Return the properties with which pyiceberg opens files."""
        return {name: value for name, value in self.properties.items() if name.startswith(_OF_FILES)}


def _is_property(name: str) -> bool:
    of, _, option = name.partition(".")
    return option in _OF_CATALOGS.get(of, ()) or (name.startswith(_OF_FILES) and bool(option))


def _text(value: Any) -> Any:
    """Return a value in the form that pyiceberg takes."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, int | float) else value
