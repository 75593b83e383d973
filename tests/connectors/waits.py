"""The waits of connectors whose source or target is away, as short as a test wants them."""

from __future__ import annotations

import pytest

from airflow_pipelines.common.retries import RetryPolicy
from airflow_pipelines.host.inputs import connector_input
from airflow_pipelines.host.outputs import queued_sink


def set_waits(monkeypatch: pytest.MonkeyPatch, first_s: float, longest_s: float) -> None:
    """Give inputs and outputs other waits for the duration of a test."""
    policy = RetryPolicy(first_wait_s=first_s, longest_wait_s=longest_s)
    for module in (connector_input, queued_sink):
        monkeypatch.setattr(module, "CONNECTOR_RETRIES", policy)
