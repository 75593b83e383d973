"""An application that is made when it is first asked: where nobody asks, it costs nothing."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send


class LateApp:
    """The plugin's application as Airflow mounts it."""

    def __init__(self) -> None:
        self._app: ASGIApp | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if self._app is None:
            # Importing takes tenths of a second, in which the server answers others.
            made = await asyncio.to_thread(_made)
            self._app = self._app or made
        await self._app(scope, receive, send)


def _made() -> ASGIApp:
    from airflow_pipelines.plugin.app import create_app

    return create_app()
