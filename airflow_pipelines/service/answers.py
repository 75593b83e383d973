"""JSON answers that can always be sent."""

from __future__ import annotations

from typing import Any

from starlette.responses import JSONResponse

from airflow_pipelines.contract.strict_json import keepable


class JsonAnswer(JSONResponse):
    """A JSON answer. Parts of a value from an older release that cannot be sent are replaced, so that the rest is answered."""

    def render(self, content: Any) -> bytes:
        """Return the bytes of the answer."""
        try:
            return super().render(content)
        except (ValueError, RecursionError):
            return super().render(keepable(content))
