"""Answers that can always be sent."""

from __future__ import annotations

from typing import Any

from starlette.responses import JSONResponse

from airflow_pipelines.contract.strict_json import keepable


class JsonAnswer(JSONResponse):
    """A JSON answer. What cannot be sent of a value that an older release kept is replaced, so that the rest is answered."""

    def render(self, content: Any) -> bytes:
        """The answer's bytes."""
        try:
            return super().render(content)
        except (ValueError, RecursionError):
            return super().render(keepable(content))
