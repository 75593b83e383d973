"""An application that is made on the first request, so that it costs nothing if there is none."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send


class LateApp:
    """The plugin's application as Airflow mounts it, made on the first request."""

    def __init__(self) -> None:
        self._app: ASGIApp | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if self._app is None:
            # Importing takes tenths of a second; in a thread it does not block the server.
            made = await asyncio.to_thread(_make_app)
            self._app = self._app or made
        await self._app(scope, receive, send)


def _make_app() -> ASGIApp:
    from airflow_pipelines.plugin.app import create_app

    return create_app()
