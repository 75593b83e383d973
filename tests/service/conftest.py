"""Fixtures of the service's tests."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.service.waiting import until

if TYPE_CHECKING:
    from fastapi import FastAPI

    from airflow_pipelines.service.control import Control


@pytest.fixture
def name(request: pytest.FixtureRequest, service_app: FastAPI) -> Iterator[str]:
    """A pipeline of this test's own name, gone afterwards."""
    name = request.node.name.replace("_", "-")[:60]
    yield name
    control: Control = service_app.state.control
    if control.store.find(name) is None:
        return
    control.stop(name, force=True)
    until(lambda: control.pipeline(name).fully_stopped)
    control.clear(name)
    until(lambda: control.pipeline(name).storage_status.value == "Cleared")
    control.delete(name)
