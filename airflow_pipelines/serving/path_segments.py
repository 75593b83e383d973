"""Segments of a request's path that have a slash in them, as names of tables may: percent-encoded, they stay one segment."""

from __future__ import annotations

from typing import Final
from urllib.parse import unquote

from starlette.types import ASGIApp, Receive, Scope, Send

_SLASH: Final = "\ufdd0"
"""Stands for a slash within a segment. Unicode has given this to no character, so that no name has it."""


class EncodedSlashes:
    """ASGI middleware that keeps ``%2F`` from separating segments; :func:`segment` gives the slash back."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        raw: bytes = scope.get("raw_path") or b""
        if b"%2f" in raw.lower():
            segments = (unquote(part).replace("/", _SLASH) for part in raw.decode("ascii", "surrogateescape").split("/"))
            scope = {**scope, "path": "/".join(segments)}
        await self._app(scope, receive, send)


def segment(parameter: str) -> str:
    """The text of a segment.

    :param parameter: the segment as routing gives it
    """
    return parameter.replace(_SLASH, "/")
