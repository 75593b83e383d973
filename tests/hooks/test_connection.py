from __future__ import annotations

import json
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
    extra = {"home": "/data/pipelines", "deployer": "dedicated", "spark_conn_id": "spark", "unrelated": 1}
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


def test_the_key_is_not_shown() -> None:
    assert "secret-key" not in repr(ServiceAddress.of(connection(host="http://h", password="secret-key")))
