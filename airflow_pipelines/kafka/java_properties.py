"""Properties of librdkafka as those of Java's client, by which Spark's own source reads topics."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

_SAME: Final = frozenset({"bootstrap.servers", "client.id", "client.rack", "client.dns.lookup"})
_LOGINS: Final = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}
"""By mechanism the class that logs in with a name and a password."""
_OF_LOGIN: Final = frozenset({"sasl.mechanism", "sasl.mechanisms", "sasl.username", "sasl.password"})
_OF_BROKERS: Final = frozenset({"ssl.ca.location", "ssl.ca.pem", "ssl.endpoint.identification.algorithm"})
_DECIDE: Final = ("sasl.", "ssl.", "https.", "enable.ssl.", "enable.sasl.")
"""How names begin of what decides whether a broker is reached; others only tune librdkafka."""


class NoJavaPropertyError(ValueError):
    """Java's client has nothing that does what a property of librdkafka does."""


def java_properties(properties: Mapping[str, Any]) -> dict[str, str]:
    """The properties of a consumer of Java that reaches the same brokers, and reads the same records.

    :param properties: those of librdkafka that were given
    :raises NoJavaPropertyError: when one has no equal
    """
    found = {name: str(value) for name, value in properties.items() if name in _SAME}
    found["isolation.level"] = str(properties.get("isolation.level", "read_committed"))
    protocol = str(properties.get("security.protocol", "plaintext")).upper()
    found["security.protocol"] = protocol
    taken = set(_SAME)
    if protocol.startswith("SASL_"):
        found |= _login(properties)
        taken |= _OF_LOGIN
    if protocol.endswith("SSL"):
        found |= _authorities(properties) | _names_of_brokers(properties)
        taken |= _OF_BROKERS
    for name in sorted(properties):
        if name.startswith(_DECIDE) and name not in taken and protocol != "PLAINTEXT":
            raise NoJavaPropertyError(f"option {name!r} has no equal in Java's client of Kafka")
    return found


def _login(properties: Mapping[str, Any]) -> dict[str, str]:
    mechanism = str(properties.get("sasl.mechanism", properties.get("sasl.mechanisms", "GSSAPI"))).upper()
    login = _LOGINS.get(mechanism)
    if login is None:
        raise NoJavaPropertyError(f"the login of {mechanism} is none of {', '.join(_LOGINS)}")
    name, password = (_quoted(str(properties.get(option, ""))) for option in ("sasl.username", "sasl.password"))
    return {"sasl.mechanism": mechanism, "sasl.jaas.config": f"{login} required username={name} password={password};"}


def _quoted(text: str) -> str:
    if "\n" in text or "\r" in text:
        raise NoJavaPropertyError("a name or a password has more than one line")
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _authorities(properties: Mapping[str, Any]) -> dict[str, str]:
    """Whose certificates are trusted: by their texts, since the machines of a cluster have no files of this one."""
    texts = properties.get("ssl.ca.pem")
    location = properties.get("ssl.ca.location")
    if texts is None and location is not None:
        try:
            texts = Path(str(location)).read_text()
        except OSError as error:
            raise NoJavaPropertyError(f"option 'ssl.ca.location' is no file that can be read ({error.strerror})") from error
        except UnicodeDecodeError as error:
            raise NoJavaPropertyError("option 'ssl.ca.location' is no file of texts (PEM)") from error
    return {} if texts is None else {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": str(texts)}


def _names_of_brokers(properties: Mapping[str, Any]) -> dict[str, str]:
    """Whether certificates have to have the name of their broker, which both clients demand unless they are told not to."""
    name = "ssl.endpoint.identification.algorithm"
    if name not in properties:
        return {}
    algorithm = str(properties[name]).lower()
    return {name: "" if algorithm == "none" else algorithm}
