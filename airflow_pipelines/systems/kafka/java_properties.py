"""Translation of librdkafka properties to those of the Java client, with which Spark's own source reads topics."""

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
"""The Java class for a login with name and password, by mechanism."""
_OF_LOGIN: Final = frozenset({"sasl.mechanism", "sasl.mechanisms", "sasl.username", "sasl.password"})
_OF_BROKERS: Final = frozenset({"ssl.ca.location", "ssl.ca.pem", "ssl.endpoint.identification.algorithm"})
_DECIDE: Final = ("sasl.", "ssl.", "https.", "enable.ssl.", "enable.sasl.")
"""The prefixes of properties that decide whether a broker can be reached. Other properties only tune librdkafka."""


class NoJavaPropertyError(ValueError):
    """A librdkafka property without an equivalent in the Java client."""


def java_properties(properties: Mapping[str, Any]) -> dict[str, str]:
    """Return the properties of a Java consumer that reaches the same brokers and reads the same records.

    :param properties: the librdkafka properties that were given
    :raises NoJavaPropertyError: if one has no equivalent
    """
    translated = {name: str(value) for name, value in properties.items() if name in _SAME}
    translated["isolation.level"] = str(properties.get("isolation.level", "read_committed"))
    protocol = str(properties.get("security.protocol", "plaintext")).upper()
    translated["security.protocol"] = protocol
    taken = set(_SAME)
    if protocol.startswith("SASL_"):
        translated |= _translate_login(properties)
        taken |= _OF_LOGIN
    if protocol.endswith("SSL"):
        translated |= _translate_authorities(properties) | _translate_name_check(properties)
        taken |= _OF_BROKERS
    for name in sorted(properties):
        if name.startswith(_DECIDE) and name not in taken and protocol != "PLAINTEXT":
            raise NoJavaPropertyError(f"option {name!r} has no equal in Java's client of Kafka")
    return translated


def _translate_login(properties: Mapping[str, Any]) -> dict[str, str]:
    mechanism = str(properties.get("sasl.mechanism", properties.get("sasl.mechanisms", "GSSAPI"))).upper()
    login = _LOGINS.get(mechanism)
    if login is None:
        raise NoJavaPropertyError(f"the login of {mechanism} is none of {', '.join(_LOGINS)}")
    name, password = (_quote(str(properties.get(option, ""))) for option in ("sasl.username", "sasl.password"))
    return {"sasl.mechanism": mechanism, "sasl.jaas.config": f"{login} required username={name} password={password};"}


def _quote(text: str) -> str:
    if "\n" in text or "\r" in text:
        raise NoJavaPropertyError("a name or a password has more than one line")
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _translate_authorities(properties: Mapping[str, Any]) -> dict[str, str]:
    """Return the trusted certificates as text, because the machines of a cluster lack the files of this one."""
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


def _translate_name_check(properties: Mapping[str, Any]) -> dict[str, str]:
    """Return the setting for the check that certificates name their broker. Both clients check it by default."""
    name = "ssl.endpoint.identification.algorithm"
    if name not in properties:
        return {}
    algorithm = str(properties[name]).lower()
    return {name: "" if algorithm == "none" else algorithm}
