"""What tests of the REST contract through PyPI's ``feldera`` share.

The client is unmodified. The service is a real ``airflow-pipelines serve``. Its shared host is the warm one of the test process, so
that a test costs its pipeline and nothing else: ``deploy(sql)`` gives it running, and it is gone after the test.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from feldera import FelderaClient, Pipeline, PipelineBuilder
from feldera.rest.retry import RetryConfig
from feldera.runtime_config import RuntimeConfig

START_S = 60.0


@pytest.fixture(scope="session")
def foreign(served_url: str) -> FelderaClient:
    """The client. It asks again at once where it would wait for seconds: the service is up."""
    return FelderaClient(served_url, retry_config=RetryConfig(initial_backoff=0.05))


@pytest.fixture
def create(foreign: FelderaClient, pipeline_name: str) -> Callable[..., Pipeline]:
    """Make this test's pipeline from SQL text and fields of the runtime configuration, compiled and stopped."""

    def created(sql: str, **runtime_config: Any) -> Pipeline:
        return PipelineBuilder(foreign, pipeline_name, sql, runtime_config=RuntimeConfig(workers=1, **runtime_config)).create()

    return created


@pytest.fixture
def deploy(create: Callable[..., Pipeline]) -> Callable[..., Pipeline]:
    """Make this test's pipeline, and start it."""

    def deployed(sql: str, **runtime_config: Any) -> Pipeline:
        pipeline = create(sql, **runtime_config)
        pipeline.start(timeout_s=START_S)
        return pipeline

    return deployed
