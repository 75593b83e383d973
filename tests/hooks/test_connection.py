from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk import Connection

from airflow_pipelines.hooks.connection import ServiceAddress


def connection(extra: dict[str, Any] | None = None, **fields: Any) -> Connection:
    return Connection(conn_id="c", conn_type="airflow_pipelines", extra=json.dumps(extra or {}), **fields)


@pytest.mark.parametrize(
    ("host", "port", "url"),
    [
        ("https://pipelines.example.com", None, "https://pipelines.example.com"),
        ("https://pipelines.example.com/", 8443, "https://pipelines.example.com:8443"),
        ("pipelines", 8080, "http://pipelines:8080"),
        ("pipelines", None, "http://pipelines"),
        ("http://pipelines:9000/team", 8080, "http://pipelines:9000/team"),
        ("http://pipelines/team", 8080, "http://pipelines:8080/team"),
        ("http://[::1]", 8080, "http://[::1]:8080"),
    ],
)
def test_a_host_becomes_a_url(host: str, port: int | None, url: str) -> None:
    assert ServiceAddress.of(connection(host=host, port=port, password="key")) == ServiceAddress(url=url, api_key="key")


def test_without_a_host_the_extras_say_where_the_embedded_service_is() -> None:
    extra = {"home": "/data/pipelines", "deployer": "dedicated", "spark_conn_id": "spark"}
    expected = ServiceAddress(home="/data/pipelines", deployer="dedicated", spark_conn_id="spark")
    assert ServiceAddress.of(connection(extra)) == expected
    assert ServiceAddress.of(connection()) == ServiceAddress()


def test_contradictions_are_refused() -> None:
    with pytest.raises(ValueError, match="known: shared, dedicated"):
        ServiceAddress.of(connection({"deployer": "mine"}))
    with pytest.raises(ValueError, match="remove these extras, or the host"):
        ServiceAddress.of(connection({"home": "/x"}, host="http://h"))
    with pytest.raises(ValueError, match="set deployer to dedicated"):
        ServiceAddress.of(connection({"spark_conn_id": "spark"}))


def test_extras_say_how_a_service_in_the_network_is_talked_to(tmp_path: Path) -> None:
    ca_file = tmp_path / "ca.pem"
    ca_file.write_text("")
    extra = {"ca_file": str(ca_file), "timeout": 30, "connect_timeout": "2.5"}
    address = ServiceAddress.of(connection(extra, host="https://h"))
    expected = ServiceAddress(url="https://h", ca_file=str(ca_file), timeout_s=30.0, connect_timeout_s=2.5)
    assert address == expected
    arguments = {"url": "https://h", "verify": str(ca_file), "timeout_s": 30.0, "connect_timeout_s": 2.5}
    assert address.client_arguments() == arguments | {"api_key": None, "home": None, "deployer": None}
    for no in (False, "false", "False"):
        assert ServiceAddress.of(connection({"verify": no, "ca_file": ""}, host="https://h")).client_arguments()["verify"] is False
    assert ServiceAddress.of(connection({"verify": None}, host="https://h")).verify is True


@pytest.mark.parametrize(
    ("extra", "host", "message"),
    [
        ({"hom": "/x"}, None, "extras that mean nothing: hom; known: with a host verify, .*without home"),
        ({"timout": 5}, "http://h", "extras that mean nothing: timout"),
        ({"verify": False}, None, "has no host"),
        ({"verify": "perhaps"}, "https://h", "verify is 'perhaps'; known: true, false"),
        ({"timeout": 0}, "https://h", "timeout is 0, and should be a number of seconds above 0"),
        ({"connect_timeout": "soon"}, "https://h", "connect_timeout is 'soon'"),
        ({"timeout": True}, "https://h", "timeout is True"),
        ({"ca_file": "/nowhere/ca.pem"}, "https://h", "no such file on this machine"),
        ({"verify": False, "ca_file": "/x"}, "https://h", "verified, or they are not"),
        ({}, "ftp://h", "begins with ftp://"),
    ],
)
def test_extras_that_mean_nothing_are_refused(extra: dict[str, Any], host: str | None, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ServiceAddress.of(connection(extra, host=host))


def test_the_key_is_not_shown() -> None:
    assert "secret-key" not in repr(ServiceAddress.of(connection(host="http://h", password="secret-key")))
