"""The guard against pages in a browser: the browser of a user can reach the service, and any page may make it send requests.

There are two checks, which follow the behaviour of browsers: a request must name this service as its host, so that a name that
somebody pointed to this machine (DNS rebinding) is useless, and a request that a browser sends for a page must be of a page of this
service. Clients that are not browsers send neither ``Origin`` nor ``Sec-Fetch-Site``.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from airflow_pipelines.common.settings import PREFIX, Settings
from airflow_pipelines.contract.error_codes import ErrorCode
from airflow_pipelines.contract.http_status import http_status
from airflow_pipelines.contract.problems import Problem
from airflow_pipelines.service.answers import JsonAnswer

PAGE = "/"
"""The path of the page for people."""
ADVICE = f"add it with --allow-host or {PREFIX}ALLOWED_HOSTS when it is to be used"


@dataclass(frozen=True, slots=True)
class AllowedHosts:
    """The names under which the service may be addressed.

    :param names: host names without a port, in lower case; loopback names are always allowed
    :param any_host: True if any other name is allowed too, because a key is needed anyway
    """

    names: frozenset[str] = frozenset()
    any_host: bool = False

    @classmethod
    def of(cls, settings: Settings, *, any_host: bool) -> AllowedHosts:
        """Return the names of the settings; if there are none, ``any_host`` decides whether any name is allowed."""
        names = frozenset(name.lower().strip("[]") for name in settings.allowed_hosts)
        return cls(names, any_host=any_host and not names)

    def refusal(self, headers: Headers, scheme: str) -> Problem | None:
        """Return the reason to refuse a request with these headers, or None.

        :param headers: the headers of the request
        :param scheme: the scheme of the request's URL
        """
        problem = self.foreign_host(headers)
        if problem is not None:
            return problem
        host = headers.get("host", "").lower()
        origin = headers.get("origin")
        if origin is not None:
            return None if self._is_own(origin.lower(), host, scheme) else _foreign_page(origin)
        site = headers.get("sec-fetch-site", "none")
        return None if site in {"none", "same-origin"} else _foreign_page(site)

    def foreign_host(self, headers: Headers) -> Problem | None:
        """Return the error of a request whose host is not a name of the service, or None."""
        host = headers.get("host", "").lower()
        if self._is_allowed(host):
            return None
        return Problem(ErrorCode.HOST_NOT_ALLOWED, f"This service is not known as '{host}': {ADVICE}", {"host": host})

    def _is_allowed(self, host: str) -> bool:
        name = _name_of(host)
        return name is not None and (self.any_host or is_loopback(name) or name in self.names)

    def _is_own(self, origin: str, host: str, scheme: str) -> bool:
        """Return True if an origin is the service's own, or of an allowed name (a proxy may have changed host and scheme)."""
        of_page, separator, place = origin.partition("://")
        if not separator or of_page not in {"http", "https"}:
            return False
        name = _name_of(place)
        if name in self.names:
            return True
        # No proxy stands between a machine and itself, so a page with another scheme is of another server.
        return place == host and (of_page == scheme or not (name is not None and is_loopback(name)))


_SCHEMES: Mapping[str, str] = {"ws": "http", "wss": "https"}
"""The scheme of a page, by the scheme of its WebSocket."""


class CrossSiteGuard:
    """ASGI middleware that answers 403 to requests for other hosts and from pages of other sites."""

    def __init__(self, app: ASGIApp, allowed: AllowedHosts) -> None:
        self._app = app
        self._allowed = allowed

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        problem = None
        if scope["type"] in {"http", "websocket"}:
            headers = Headers(scope=scope)
            if _opens_page(scope, headers):
                problem = self._allowed.foreign_host(headers)
            else:
                problem = self._allowed.refusal(headers, _scheme_of_page(scope))
        if problem is None:
            await self._app(scope, receive, send)
        else:
            await JsonAnswer(problem.body(), http_status(problem.code))(scope, receive, send)


def _scheme_of_page(scope: Scope) -> str:
    scheme: str = scope["scheme"]
    return _SCHEMES.get(scheme, scheme)


def _opens_page(scope: Scope, headers: Headers) -> bool:
    """Return True if somebody follows a link to the service's page, from any site: the page itself is the same for everybody."""
    followed = (headers.get("sec-fetch-mode"), headers.get("sec-fetch-dest")) == ("navigate", "document")
    return followed and scope["path"] == PAGE and scope.get("method") == "GET"


def is_loopback(name: str) -> bool:
    """Return True if a host name or address always means the machine itself."""
    if name == "localhost":
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def _name_of(host: str) -> str | None:
    """Return the name in ``name:port``; None if there is none."""
    try:
        return urlsplit(f"//{host}").hostname
    except ValueError:
        return None


def _foreign_page(origin: str) -> Problem:
    text = f"A browser sent this request for a page of another site ({origin}), which is not answered: {ADVICE}"
    return Problem(ErrorCode.ORIGIN_NOT_ALLOWED, text, {"origin": origin})
