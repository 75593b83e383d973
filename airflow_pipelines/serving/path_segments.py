"""Path segments that contain a slash, as names of tables may: percent-encoded, they stay one segment."""

from __future__ import annotations

from typing import Final
from urllib.parse import unquote

from starlette.types import ASGIApp, Receive, Scope, Send

_SLASH: Final = "\ufdd0"
"""The character that stands for a slash within a segment. It is a noncharacter of Unicode, so no name contains it."""


class EncodedSlashes:
    """ASGI middleware that keeps ``%2F`` from separating segments; :func:`segment` restores the slash."""

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
    """Return the text of a segment, with its slashes restored.

    :param parameter: the segment as routing gives it
    """
    return parameter.replace(_SLASH, "/")
