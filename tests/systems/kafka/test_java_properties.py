"""Properties of librdkafka for Java's client."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from airflow_pipelines.systems.kafka.java_properties import NoJavaPropertyError, java_properties

SERVERS = {"bootstrap.servers": "a:1,b:2"}


def test_only_what_decides_what_is_read_is_passed_on() -> None:
    given = {
        **SERVERS,
        "group.id": "g",
        "fetch.min.bytes": 5,
        "debug": "all",
        "log_level": 3,
        "client.id": "me",
        "client.dns.lookup": "use_all_dns_ips",
    }
    assert java_properties(given) == {
        "bootstrap.servers": "a:1,b:2",
        "client.id": "me",
        "client.dns.lookup": "use_all_dns_ips",
        "isolation.level": "read_committed",
        "security.protocol": "PLAINTEXT",
    }


def test_records_that_are_not_committed_are_read_only_when_they_are_asked_for() -> None:
    assert java_properties({**SERVERS, "isolation.level": "read_uncommitted"})["isolation.level"] == "read_uncommitted"


@pytest.mark.parametrize("name", ["sasl.mechanism", "sasl.mechanisms"])
def test_a_login_may_have_any_letters(name: str) -> None:
    login = {"security.protocol": "sasl_ssl", name: "scram-sha-512", "sasl.username": 'a"b', "sasl.password": 'c\\"; d'}
    found = java_properties({**SERVERS, **login})
    assert found["security.protocol"] == "SASL_SSL"
    assert found["sasl.mechanism"] == "SCRAM-SHA-512"
    assert found["sasl.jaas.config"] == (
        'org.apache.kafka.common.security.scram.ScramLoginModule required username="a\\"b" password="c\\\\\\"; d";'
    )


def test_authorities_are_given_by_their_texts(tmp_path: Path) -> None:
    file = tmp_path / "ca.pem"
    file.write_text("-----BEGIN CERTIFICATE-----")
    expected = {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": "-----BEGIN CERTIFICATE-----"}
    for given in ({"ssl.ca.location": str(file)}, {"ssl.ca.pem": file.read_text()}):
        assert expected.items() <= java_properties({**SERVERS, "security.protocol": "ssl", **given}).items()


@pytest.mark.parametrize(
    ("given", "word"),
    [
        ({"security.protocol": "sasl_plaintext"}, "GSSAPI"),
        ({"security.protocol": "sasl_ssl", "sasl.mechanism": "OAUTHBEARER"}, "OAUTHBEARER"),
        ({"security.protocol": "sasl_ssl", "sasl.mechanism": "PLAIN", "sasl.password": "a\nb"}, "more than one line"),
        ({"security.protocol": "ssl", "ssl.key.pem": "x"}, "ssl.key.pem"),
        ({"security.protocol": "ssl", "enable.ssl.certificate.verification": False}, "enable.ssl.certificate.verification"),
        ({"security.protocol": "ssl", "ssl.ca.location": "/does/not/exist"}, "ssl.ca.location"),
    ],
)
def test_what_has_no_equal_is_named_without_its_value(given: dict[str, Any], word: str) -> None:
    with pytest.raises(NoJavaPropertyError, match=word) as raised:
        java_properties({**SERVERS, **given})
    assert "a\nb" not in str(raised.value)


def test_authorities_that_are_no_text_stay_with_the_host(tmp_path: Path) -> None:
    file = tmp_path / "ca.der"
    file.write_bytes(b"\x30\x82\xff\xfe")
    for location in (file, tmp_path):
        with pytest.raises(NoJavaPropertyError, match=r"ssl\.ca\.location"):
            java_properties({**SERVERS, "security.protocol": "ssl", "ssl.ca.location": str(location)})


@pytest.mark.parametrize(("given", "expected"), [("none", ""), ("https", "https"), ("HTTPS", "https")])
def test_whether_names_of_brokers_are_compared(given: str, expected: str) -> None:
    name = "ssl.endpoint.identification.algorithm"
    assert java_properties({**SERVERS, "security.protocol": "ssl", name: given})[name] == expected
    assert name not in java_properties({**SERVERS, "security.protocol": "ssl"})
    assert name not in java_properties({**SERVERS, name: given})


def test_options_of_a_login_mean_nothing_where_nobody_logs_in() -> None:
    assert "sasl.jaas.config" not in java_properties({**SERVERS, "sasl.username": "u", "sasl.password": "p"})
