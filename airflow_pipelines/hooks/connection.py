"""What an Airflow connection of type ``airflow_pipelines`` says about where the pipelines are."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from airflow.sdk import Connection

_DEPLOYERS = ("shared", "dedicated")
_EXTRAS = ("home", "deployer", "spark_conn_id")


_PART = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]*")
"""The names of extras that can be part of a secret's name."""
_PARTS = ("login", "password", "host", "schema", "port")


def secret_parts(connection: Connection) -> dict[str, str]:
    """The parts of any connection that have a value, with those of its extras that are texts or numbers.

    :param connection: the connection
    :returns: the values by part, those of the extras by their names
    """
    extras = {name: value for name, value in connection.extra_dejson.items() if _PART.fullmatch(name)}
    found = extras | {part: getattr(connection, part) for part in _PARTS}
    usable = (str, int, float)
    return {part: str(value) for part, value in found.items() if isinstance(value, usable) and str(value)}


@dataclass(frozen=True, slots=True)
class ServiceAddress:
    """Where pipelines are reached.

    With ``url``: a service in the network, with its ``api_key``. Without: the embedded service over ``home``, whose hosts are
    run by ``deployer`` (``shared`` or ``dedicated``) and, when dedicated, submitted with the Spark connection ``spark_conn_id``.
    """

    url: str | None = None
    api_key: str | None = field(default=None, repr=False)
    home: str | None = None
    deployer: str | None = None
    spark_conn_id: str | None = None

    @classmethod
    def of(cls, connection: Connection) -> ServiceAddress:
        """Read a connection.

        :param connection: host (a URL, or a name with the port beside it), password (the API key), extras ``home``, ``deployer``,
            ``spark_conn_id``
        :returns: the address
        :raises ValueError: an extra has a value that means nothing, or belongs to the embedded service while there is a host
        """
        extra: dict[str, Any] = {name: value for name, value in connection.extra_dejson.items() if name in _EXTRAS and value}
        deployer = extra.get("deployer")
        if deployer is not None and deployer not in _DEPLOYERS:
            raise ValueError(f"connection {connection.conn_id!r}: deployer is {deployer!r}; known: {', '.join(_DEPLOYERS)}")
        if connection.host:
            if extra:
                raise ValueError(
                    f"connection {connection.conn_id!r} has a host, so the service behind it decides about "
                    f"{', '.join(sorted(extra))}: remove these extras, or the host"
                )
            return cls(url=_url(connection), api_key=connection.password or None)
        if extra.get("spark_conn_id") and deployer != "dedicated":
            raise ValueError(
                f"connection {connection.conn_id!r} has spark_conn_id, which only dedicated hosts are submitted with: "
                "set deployer to dedicated, or remove it"
            )
        return cls(home=extra.get("home"), deployer=deployer, spark_conn_id=extra.get("spark_conn_id"))


def _url(connection: Connection) -> str:
    host = str(connection.host).rstrip("/")
    if "://" not in host:
        host = f"http://{host}"
    scheme, _, rest = host.partition("://")
    authority, slash, path = rest.partition("/")
    has_port = ":" in authority.rsplit("]", 1)[-1]
    if connection.port and not has_port:
        authority = f"{authority}:{connection.port}"
    return f"{scheme}://{authority}{slash}{path}"
