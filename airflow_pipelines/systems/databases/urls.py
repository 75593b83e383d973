"""URLs of databases: those of JDBC in the notation of SQLAlchemy, and how they are shown. Imports no driver."""

from __future__ import annotations

import re
from typing import Final

_DRIVERS: Final = {
    "postgresql": "postgresql+psycopg",
    "mysql": "mysql+pymysql",
    "mariadb": "mariadb+pymysql",
    "sqlserver": "mssql+pyodbc",
}
"""The dialect and driver of SQLAlchemy by the kind of database in a JDBC URL."""


def translate_url(url: str) -> str:
    """Return the URL of SQLAlchemy for one of JDBC; any other URL as it is.

    :param url: a URL of JDBC or of SQLAlchemy
    :raises ValueError: if it is one of JDBC for a database that is not known
    """
    if not url.startswith("jdbc:"):
        return url
    kind, _, rest = url.removeprefix("jdbc:").partition(":")
    if kind == "sqlite":
        return f"sqlite:///{rest}"
    if kind not in _DRIVERS or not rest.startswith("//"):
        raise ValueError(f"A JDBC URL for {kind!r} is not translated: use a URL of SQLAlchemy, such as 'oracle+oracledb://host/db'")
    return f"{_DRIVERS[kind]}:{rest}"


def shown_url(url: str) -> str:
    """Return a URL for messages, without user, password and parameters, which can be secret.

    :param url: a URL of JDBC or SQLAlchemy
    :returns: the location of the database
    """
    return re.split("[?;]", re.sub(r"//.*@", "//***@", url))[0]
