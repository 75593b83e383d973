"""Errors of databases: which pass by themselves, and what is said of the others."""

from __future__ import annotations

import sqlite3

import psycopg
import pytest
from sqlalchemy.exc import IntegrityError, InterfaceError, OperationalError, SQLAlchemyError

from airflow_pipelines.systems.databases import engines
from airflow_pipelines.systems.databases.postgresql import is_transient
from airflow_pipelines.systems.databases.urls import shown_url


@pytest.mark.parametrize(
    ("error", "goes_away"),
    [
        (psycopg.errors.AdminShutdown(), True),
        (psycopg.errors.TooManyConnections(), True),
        (psycopg.errors.CannotConnectNow(), True),
        (psycopg.errors.SerializationFailure(), True),
        (psycopg.errors.ObjectInUse(), True),
        (psycopg.OperationalError("server closed the connection unexpectedly"), True),
        (psycopg.OperationalError('FATAL:  password authentication failed for user "me"'), False),
        (psycopg.OperationalError('FATAL:  database "x" does not exist'), False),
        (psycopg.OperationalError("consuming input failed: SSL SYSCALL error: EOF detected"), True),
        (psycopg.OperationalError("consuming input failed: SSL connection has been closed unexpectedly"), True),
        (psycopg.OperationalError("connection failed: SSL error: unexpected eof while reading"), True),
        (psycopg.OperationalError('connection to server at "certificates.example", port 5432 failed: Connection refused'), True),
        (psycopg.OperationalError("connection failed: SSL error: certificate verify failed"), False),
        (psycopg.OperationalError("connection failed: SSL error: tlsv1 alert unknown ca"), False),
        (psycopg.OperationalError("connection failed: server does not support SSL, but SSL was required"), False),
        (psycopg.errors.UndefinedTable(), False),
        (psycopg.errors.CheckViolation(), False),
        (psycopg.DatabaseError("division by zero"), False),
    ],
)
def test_what_goes_away_by_itself(error: psycopg.Error, goes_away: bool) -> None:
    assert is_transient(error) is goes_away


def _of_sqlalchemy(kind: type[OperationalError], cause: Exception) -> SQLAlchemyError:
    return kind("SELECT 1", None, cause)


@pytest.mark.parametrize(
    ("error", "goes_away"),
    [
        (_of_sqlalchemy(OperationalError, psycopg.errors.AdminShutdown()), True),
        (_of_sqlalchemy(OperationalError, psycopg.OperationalError("password authentication failed for user")), False),
        (_of_sqlalchemy(OperationalError, sqlite3.OperationalError("database is locked")), True),
        (_of_sqlalchemy(InterfaceError, sqlite3.InterfaceError("closed")), True),
        (_of_sqlalchemy(IntegrityError, psycopg.errors.UniqueViolation()), False),
        (ValueError("no error of a database"), False),
    ],
)
def test_errors_of_sqlalchemy_pass_as_those_of_their_drivers_do(error: Exception, goes_away: bool) -> None:
    assert engines.is_transient(error) is goes_away


def test_an_error_is_explained_with_what_to_do_and_without_the_password() -> None:
    refused = _of_sqlalchemy(OperationalError, psycopg.OperationalError("password authentication failed, it is no s3cret"))
    said = engines.explain_error(refused, "the options", "s3cret")
    assert said == (
        "password authentication failed, it is no ***. Check user and password in the options, and what the server's"
        " pg_hba.conf allows."
    )
    locked = _of_sqlalchemy(OperationalError, sqlite3.OperationalError("database is locked"))
    assert engines.explain_error(locked, "the options", None) == "database is locked."


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("jdbc:postgresql://me:s3cret@host:5432/db?password=s3cret", "jdbc:postgresql://***@host:5432/db"),
        ("jdbc:sqlserver://host;password=s3cret", "jdbc:sqlserver://host"),
        ("sqlite:///folder/shop.db", "sqlite:///folder/shop.db"),
    ],
)
def test_a_url_is_shown_without_secrets(url: str, shown: str) -> None:
    assert shown_url(url) == shown
