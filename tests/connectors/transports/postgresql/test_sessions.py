"""How a server is reached, and what is said when it is not."""

from __future__ import annotations

import stat
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict
from pydantic import ValidationError

from airflow_pipelines.connectors.base import ConnectorFailure
from airflow_pipelines.connectors.transports.postgresql.options import ConnectionOptions, PostgresCdcInputOptions
from airflow_pipelines.connectors.transports.postgresql.sessions import Sessions

URI = "postgresql://me:s3cret@db.example:5433/shop"


def test_texts_of_certificates_become_files_of_this_user_alone() -> None:
    sessions = Sessions("x", ConnectionOptions(uri=URI, ssl_ca_pem="CA", ssl_client_pem="PEM", ssl_client_key="KEY"))
    found = conninfo_to_dict(sessions.conninfo())
    assert found["sslmode"] == "verify-full"
    key = Path(str(found["sslkey"]))
    assert key.read_text() == "KEY"
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert Path(str(found["sslrootcert"])).read_text() == "CA"
    named = Sessions("x", ConnectionOptions(uri=URI, ssl_ca_location="/etc/ca.pem", verify_hostname=False))
    assert conninfo_to_dict(named.conninfo())["sslrootcert"] == "/etc/ca.pem"
    assert conninfo_to_dict(named.conninfo())["sslmode"] == "verify-ca"
    with pytest.raises(ValidationError, match="ssl_ca_pem and ssl_ca_location say the same"):
        ConnectionOptions(uri=URI, ssl_ca_location="/etc/ca.pem", ssl_ca_pem="CA")


def test_what_the_uri_asks_for_stays() -> None:
    sessions = Sessions("x", ConnectionOptions(uri=f"{URI}?sslmode=require&application_name=mine&options=-c%20geqo%3Doff"))
    found = conninfo_to_dict(sessions.conninfo(replication="database"))
    assert (found["sslmode"], found["application_name"], found["replication"]) == ("require", "mine", "database")
    assert str(found["options"]).startswith("-c geqo=off -c datestyle=ISO,")
    assert "-c timezone=UTC" in str(found["options"])


def test_messages_say_what_to_do_and_no_password() -> None:
    sessions = Sessions("x", ConnectionOptions(uri=URI))
    text = sessions.message(
        "cannot do it", psycopg.errors.ObjectNotInPrerequisiteState("logical decoding requires wal_level >= logical")
    )
    assert text.startswith("x: cannot do it (db.example:5433/shop): ")
    assert text.endswith("Set wal_level = logical in the server's configuration, and restart it.")
    assert "s3cret" not in sessions.message("cannot do it", psycopg.OperationalError("no s3cret here"))
    with pytest.raises(ConnectorFailure, match="uri is not a connection URI") as failure:
        Sessions("x", ConnectionOptions(uri="postgresql://me:s3cret@[db")).conninfo()
    assert "s3cret" not in repr([failure.value, failure.value.__cause__])


def test_what_is_no_uri_is_refused_when_it_is_compiled() -> None:
    with pytest.raises(ValidationError, match=r"a URI begins with postgresql://"):
        ConnectionOptions(uri="host=db.example password=s3cret")
    assert ConnectionOptions(uri="${secret:database}").uri == "${secret:database}"


def test_names_of_slots() -> None:
    for name in ("Mine", "a-b", "", "x" * 64):
        with pytest.raises(ValidationError, match="a slot's name has lower-case letters"):
            PostgresCdcInputOptions(uri=URI, publication="p", source_table="t", slot=name)
