"""The service address in an Airflow connection of type ``airflow_pipelines``."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from airflow.sdk import Connection

_DEPLOYERS = ("shared", "dedicated")
_EMBEDDED_EXTRAS = ("home", "deployer", "spark_conn_id")
_NETWORK_EXTRAS = ("verify", "ca_file", "timeout", "connect_timeout")
_YES_AND_NO = {"true": True, "false": False}


_PART = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]*")
"""The pattern of names of extras that can be part of a secret's name."""
_PARTS = ("login", "password", "host", "schema", "port")


def secret_parts(connection: Connection) -> dict[str, str]:
    """Return the parts of any connection that have a value, with its extras that are texts or numbers.

    :param connection: the connection
    :returns: the values by part; those of the extras by their names
    """
    extras = {name: value for name, value in connection.extra_dejson.items() if _PART.fullmatch(name)}
    parts = extras | {part: getattr(connection, part) for part in _PARTS}
    usable = (str, int, float)
    return {part: str(value) for part, value in parts.items() if isinstance(value, usable) and str(value)}


@dataclass(frozen=True, slots=True)
class ServiceAddress:
    """The address of a service of pipelines.

    With ``url``: a service in the network, with its ``api_key``, the verification of its certificate, and the timeouts of answers
    and connections. Without: the embedded service over ``home``, whose hosts are run by ``deployer`` (``shared`` or ``dedicated``)
    and, if dedicated, submitted with the Spark connection ``spark_conn_id``.
    """

    url: str | None = None
    api_key: str | None = field(default=None, repr=False)
    verify: bool = True
    ca_file: str | None = None
    timeout_s: float | None = None
    connect_timeout_s: float | None = None
    home: str | None = None
    deployer: str | None = None
    spark_conn_id: str | None = None

    @classmethod
    def of(cls, connection: Connection) -> ServiceAddress:
        """Parse a connection.

        :param connection: host (a URL, or a name with the port beside it), password (the API key), and extras: ``verify``,
            ``ca_file``, ``timeout`` and ``connect_timeout`` with a host; ``home``, ``deployer`` and ``spark_conn_id`` without
        :returns: the address
        :raises ValueError: if an extra is unknown, has an invalid value, or belongs to the other kind of connection
        """
        where = f"connection {connection.conn_id!r}"
        extra = {name: value for name, value in connection.extra_dejson.items() if value is not None and value != ""}
        unknown = sorted(set(extra) - {*_EMBEDDED_EXTRAS, *_NETWORK_EXTRAS})
        if unknown:
            known = f"with a host {', '.join(_NETWORK_EXTRAS)}; without {', '.join(_EMBEDDED_EXTRAS)}"
            raise ValueError(f"{where} has extras that mean nothing: {', '.join(unknown)}; known: {known}")
        return cls._in_the_network(connection, where, extra) if connection.host else cls._parse_embedded(where, extra)

    @classmethod
    def _in_the_network(cls, connection: Connection, where: str, extra: Mapping[str, Any]) -> ServiceAddress:
        others = sorted(set(extra) & set(_EMBEDDED_EXTRAS))
        if others:
            raise ValueError(
                f"{where} has a host, so the service behind it decides about {', '.join(others)}: remove these extras, or the host"
            )
        verify = _parse_bool(where, "verify", extra.get("verify", True))
        ca_file = extra.get("ca_file")
        if ca_file is not None and not verify:
            raise ValueError(f"{where} has a ca_file and verify false: certificates are verified, or they are not")
        return cls(
            url=_url(connection),
            api_key=connection.password or None,
            verify=verify,
            ca_file=None if ca_file is None else _file(where, str(ca_file)),
            timeout_s=_seconds(where, "timeout", extra.get("timeout")),
            connect_timeout_s=_seconds(where, "connect_timeout", extra.get("connect_timeout")),
        )

    @classmethod
    def _parse_embedded(cls, where: str, extra: Mapping[str, Any]) -> ServiceAddress:
        others = sorted(set(extra) & set(_NETWORK_EXTRAS))
        if others:
            raise ValueError(
                f"{where} has no host, so there is no network that {', '.join(others)} could be about: remove these extras, or "
                "name the host"
            )
        deployer = extra.get("deployer")
        if deployer is not None and deployer not in _DEPLOYERS:
            raise ValueError(f"{where}: deployer is {deployer!r}; known: {', '.join(_DEPLOYERS)}")
        if extra.get("spark_conn_id") and deployer != "dedicated":
            raise ValueError(
                f"{where} has spark_conn_id, which only dedicated hosts are submitted with: set deployer to dedicated, or remove it"
            )
        return cls(home=extra.get("home"), deployer=deployer, spark_conn_id=extra.get("spark_conn_id"))

    def client_arguments(self) -> dict[str, Any]:
        """Return the arguments of a client for the address."""
        limits = {"timeout_s": self.timeout_s, "connect_timeout_s": self.connect_timeout_s}
        return {
            "url": self.url,
            "api_key": self.api_key,
            "home": self.home,
            "deployer": self.deployer,
            "verify": self.ca_file or self.verify,
            **{name: value for name, value in limits.items() if value is not None},
        }


def _url(connection: Connection) -> str:
    host = str(connection.host).rstrip("/")
    if "://" not in host:
        host = f"http://{host}"
    scheme, _, rest = host.partition("://")
    if scheme not in ("http", "https"):
        raise ValueError(f"connection {connection.conn_id!r}: the host's URL begins with {scheme}://; it should be http or https")
    authority, slash, path = rest.partition("/")
    has_port = ":" in authority.rsplit("]", 1)[-1]
    if connection.port and not has_port:
        authority = f"{authority}:{connection.port}"
    return f"{scheme}://{authority}{slash}{path}"


def _parse_bool(where: str, name: str, value: Any) -> bool:
    """Convert a JSON boolean, or its text form in a connection URI, to a bool."""
    if isinstance(value, bool):
        return value
    if str(value).lower() not in _YES_AND_NO:
        raise ValueError(f"{where}: {name} is {value!r}; known: true, false")
    return _YES_AND_NO[str(value).lower()]


def _seconds(where: str, name: str, value: Any) -> float | None:
    if value is None:
        return None
    try:
        seconds = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        seconds = math.nan
    if not (math.isfinite(seconds) and seconds > 0):
        raise ValueError(f"{where}: {name} is {value!r}, and should be a number of seconds above 0")
    return seconds


def _file(where: str, path: str) -> str:
    if not Path(path).is_file():
        raise ValueError(f"{where}: ca_file is {path!r}, and there is no such file on this machine")
    return path
