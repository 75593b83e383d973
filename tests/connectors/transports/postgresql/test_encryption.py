"""A server that takes encrypted connections only, from clients with a certificate."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from airflow_pipelines.connectors.base import ConnectorFailure, TransientConnectorFailure
from tests.connectors.relations import col, relation
from tests.connectors.transports.postgresql.sources import opened, read_all, rows
from tools.postgres_server import PostgresServer, find_programs

pytestmark = pytest.mark.core

ONE = relation(col("x", "INTEGER"))


def openssl(folder: Path, *arguments: str) -> None:
    subprocess.run(["openssl", *arguments], check=True, capture_output=True, cwd=folder)


def certify(folder: Path, name: str, common_name: str, extension: str) -> None:
    """Make a key, and a certificate of the authority for it."""
    openssl(
        folder,
        "req",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-keyout",
        f"{name}.key",
        "-out",
        f"{name}.csr",
        "-subj",
        f"/CN={common_name}",
    )
    (folder / "extension").write_text(extension)
    signed = ["-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2", "-extfile", "extension"]
    openssl(folder, "x509", "-req", "-in", f"{name}.csr", "-out", f"{name}.crt", *signed)


@pytest.fixture(scope="module")
def certificates(processes: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("certificates")
    openssl(
        folder,
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-keyout",
        "ca.key",
        "-out",
        "ca.crt",
        "-days",
        "2",
        "-subj",
        "/CN=authority",
    )
    certify(folder, "server", "127.0.0.1", "subjectAltName=IP:127.0.0.1")
    certify(folder, "client", "pipelines", "basicConstraints=CA:false")
    return folder


@pytest.fixture(scope="module")
def server(certificates: Path) -> Iterator[PostgresServer]:
    programs = find_programs()
    if programs is None:
        pytest.skip("no PostgreSQL server is installed (Debian: apt-get install postgresql)")
    made = PostgresServer(programs, certificates)
    made.start()
    yield made
    made.close()


@pytest.mark.rest
def test_certificates_as_texts_and_as_files(server: PostgresServer, certificates: Path) -> None:
    files = {
        "ssl_ca": certificates / "ca.crt",
        "ssl_client": certificates / "client.crt",
        "ssl_client_key": certificates / "client.key",
    }
    located = {f"{name}_location": str(path) for name, path in files.items()}
    texts = {f"{name}_pem" if name != "ssl_client_key" else name: path.read_text() for name, path in files.items()}
    query = "SELECT 1 AS x FROM pg_stat_ssl WHERE pid = pg_backend_pid() AND ssl AND client_dn = '/CN=pipelines'"
    for options in (located, texts):
        assert [row["x"] for row in rows(*read_all(opened(ONE, "postgres_input", uri=server.url(), query=query, **options)))] == [1]
    with psycopg.connect(
        server.url(), sslcert=located["ssl_client_location"], sslkey=located["ssl_client_key_location"]
    ) as connection:
        connection.execute("CREATE TABLE t (x int PRIMARY KEY)")
        connection.execute("INSERT INTO t VALUES (7)")
        connection.execute("CREATE PUBLICATION p FOR TABLE t WITH (publish = 'insert')")
    source = opened(ONE, "postgres_cdc_input", uri=server.url(), publication="p", source_table="t", **texts)
    while (chunk := source.read(10, 1)) is None:
        pass
    assert [row["x"] for row in rows(chunk)] == [7]
    assert source.read(10, 0.1) is None
    source.close()


def test_who_shows_a_wrong_certificate(server: PostgresServer, certificates: Path, tmp_path: Path) -> None:
    client = {"ssl_client_location": str(certificates / "client.crt"), "ssl_client_key_location": str(certificates / "client.key")}
    openssl(
        tmp_path,
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-keyout",
        "o.key",
        "-out",
        "o.crt",
        "-days",
        "2",
        "-subj",
        "/CN=other",
    )
    other = {"ssl_ca_pem": (tmp_path / "o.crt").read_text(), **client}
    with pytest.raises(ConnectorFailure, match="certificate verify failed") as failure:
        opened(ONE, "postgres_input", uri=server.url(), query="SELECT 1 AS x", **other)
    assert not isinstance(failure.value, TransientConnectorFailure)
    elsewhere = server.url().replace("127.0.0.1", "localhost")
    with pytest.raises(ConnectorFailure, match='does not match host name "localhost"'):
        opened(ONE, "postgres_input", uri=elsewhere, query="SELECT 1 AS x", ssl_ca_location=str(certificates / "ca.crt"), **client)
    loose = {"verify_hostname": False, "ssl_ca_location": str(certificates / "ca.crt"), **client}
    opened(ONE, "postgres_input", uri=elsewhere, query="SELECT 1 AS x", **loose).close()
    with pytest.raises(ConnectorFailure, match="connection requires a valid client certificate") as failure:
        opened(ONE, "postgres_input", uri=server.url(), query="SELECT 1 AS x")
    assert not isinstance(failure.value, TransientConnectorFailure)
