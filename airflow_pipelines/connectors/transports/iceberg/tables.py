"""Access to Iceberg tables, and the translation of errors of the library into those of a connector."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from pyiceberg import exceptions
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.table import StaticTable, Table

from airflow_pipelines.connectors.base import ConnectorFailure, TransientConnectorFailure
from airflow_pipelines.connectors.transports.iceberg.catalog_options import IcebergOptions
from airflow_pipelines.engine.storage.errors import StorageError
from airflow_pipelines.systems.files.access import without_names

_REFUSED: Final = (exceptions.UnauthorizedError, exceptions.ForbiddenError, exceptions.AuthorizationExpiredError, PermissionError)
_MISSING: Final = (exceptions.NoSuchTableError, exceptions.NoSuchNamespaceError)
_WRONG: Final = (
    exceptions.ValidationError,
    exceptions.ResolveError,
    exceptions.NotInstalledError,
    exceptions.BadRequestError,
    ValueError,
    TypeError,
    ArithmeticError,
    NotImplementedError,
    FileNotFoundError,
)
"""The errors that a retry does not cure."""
_DENIED: Final = re.compile(
    r"(?i)access_?denied|forbidden|unauthori[sz]ed|signature|invalid_?access_?key|unrecognizedclient|expired_?token|credentials"
    r"|authentication failed|no password supplied|\((401|403)\)"
)
"""The words of denied access; stores, Glue and databases have no other sign of it."""


@contextmanager
def table_access(what: str) -> Iterator[None]:
    """Turn errors of a table, its catalog or its files into those of a connector.

    :param what: a text that says what cannot be done
    :raises ConnectorFailure: when it cannot be done
    :raises TransientConnectorFailure: when a later try may do it
    """
    try:
        yield
    except (ConnectorFailure, StorageError):
        # These are already errors of a connector, or say that another run has taken over.
        raise
    except _MISSING as error:
        raise ConnectorFailure(f"{what}: there is no such table: {_words(error)}. Check 'table_name' and the catalog.") from error
    except _REFUSED as error:
        raise _make_refusal(what, error) from error
    except _WRONG as error:
        raise ConnectorFailure(f"{what}: {_words(error)}") from error
    except Exception as error:
        if _DENIED.search(without_names(str(error))):
            raise _make_refusal(what, error) from error
        # Each catalog and store has its own errors for being unavailable.
        raise TransientConnectorFailure(f"{what}: {_words(error)}") from error


def open_catalog(options: IcebergOptions) -> Catalog:
    """Return the catalog of a connector."""
    return load_catalog(options.catalog_name, **options.catalog_properties())


def table_of_metadata(location: str, options: IcebergOptions) -> Table:
    """Return the table that a metadata file describes, which is never changed."""
    return StaticTable.from_metadata(location, options.file_properties())


def without_retries(table: Any) -> Any:
    """Return the table, whose next commit fails if another one comes first, so that the caller can look again."""
    properties = {**table.metadata.properties, "commit.retry.num-retries": "0"}
    table.metadata = table.metadata.model_copy(update={"properties": properties})
    return table


def _make_refusal(what: str, error: Exception) -> ConnectorFailure:
    return ConnectorFailure(
        f"{what}: the catalog or the store of the files refuses: {_words(error)}. Check the keys and what they may do."
    )


def _words(error: Exception) -> str:
    return str(error).strip().partition("\n")[0] or type(error).__name__
