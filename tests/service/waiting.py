"""Looking at pipelines over REST until they are as a test wants them."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from starlette.testclient import TestClient


def until(condition: Callable[[], Any], limit_s: float = 60.0) -> None:
    deadline = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)


def status(rest: TestClient, name: str) -> dict[str, Any]:
    answer: dict[str, Any] = rest.get(f"/v0/pipelines/{name}?selector=status").json()
    return answer
