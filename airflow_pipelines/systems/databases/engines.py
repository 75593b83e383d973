"""Engines of SQLAlchemy for the databases that URLs of JDBC or SQLAlchemy name."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Engine, create_engine
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, InterfaceError, NoSuchModuleError, OperationalError, SQLAlchemyError
from sqlalchemy.pool import NullPool

from airflow_pipelines.systems.databases.urls import translate_url


def database_url(url: str, user_name: str | None, password: str | None) -> URL:
    """Return the SQLAlchemy URL of a database.

    :param url: a URL of JDBC or of SQLAlchemy
    :param user_name: the user; None for that of the URL
    :param password: the password; None for that of the URL
    :returns: the URL
    :raises ValueError: if the URL is invalid or cannot be translated
    """
    try:
        made = make_url(translate_url(url))
    except ArgumentError:
        raise ValueError("url is neither a URL of JDBC such as 'jdbc:postgresql://host/db' nor one of SQLAlchemy") from None
    if made.get_backend_name() == "sqlite":
        return made  # A file has no users, so they are ignored, as with JDBC.
    if user_name is not None:
        made = made.set(username=user_name)
    return made if password is None else made.set(password=password)


def database_engine(url: str, user_name: str | None, password: str | None) -> Engine:
    """Return an engine that opens a connection for each transaction.

    :param url: see :func:`database_url`
    :param user_name: see :func:`database_url`
    :param password: see :func:`database_url`
    :returns: the engine
    :raises ValueError: if the driver is not installed
    """
    try:
        return create_engine(database_url(url, user_name, password), poolclass=NullPool, hide_parameters=True)
    except (NoSuchModuleError, ModuleNotFoundError) as error:
        raise ValueError(f"The driver is not installed ({error}): install it, or name another in the URL") from None


def is_transient(error: BaseException) -> bool:
    """Return True if an error is one of the connection or a lock, which may go away by itself.

    :param error: an error of SQLAlchemy
    """
    if not isinstance(error, OperationalError | InterfaceError):
        return False
    if type(error.orig).__module__.startswith("psycopg"):
        # Only those who have the driver can import it.
        from airflow_pipelines.systems.databases import postgresql

        return postgresql.is_transient(error.orig)  # type: ignore[arg-type]
    return True


def explain_error(error: SQLAlchemyError, where: str, password: str | None) -> str:
    """Return the message of a database, with what to do where that is known, and without the password.

    :param error: an error of SQLAlchemy
    :param where: the place where the connection was given, for messages
    :param password: the password of the connection, if it has one
    """
    cause: Any = getattr(error, "orig", None) or error
    text = " ".join(str(cause).split())
    advice = ""
    if type(cause).__module__.startswith("psycopg"):
        from airflow_pipelines.systems.databases import postgresql

        advice = postgresql.advise(cause, text, where)
    shown = (text.replace(password, "***") if password else text).rstrip(".")
    return f"{shown}.{advice}"
