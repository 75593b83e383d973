"""What tests of the REST contract through PyPI's ``feldera`` share, and through the project's own SDK, which has the same methods.

The foreign client is unmodified. The service is a real ``airflow-pipelines serve``. Its shared host is the warm one of the test
process, so that a test costs its pipeline and nothing else: ``deploy(sql)`` gives it running, and it is gone after the test.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import feldera.enums
import feldera.runtime_config
import pytest
import requests
from feldera import FelderaClient, Pipeline, PipelineBuilder
from feldera.rest.errors import FelderaAPIError
from feldera.rest.retry import RetryConfig
from feldera.runtime_config import RuntimeConfig

import airflow_pipelines

START_S = 60.0


@dataclass(frozen=True)
class Sdk:
    """One of the two SDKs, with this test's pipeline.

    :param module: has the classes and enumerations
    :param client: a client of the service
    :param api_error: what is raised when the service refuses
    :param name: the pipeline's name
    :param url: the service's address
    """

    module: Any
    client: Any
    api_error: type[Exception]
    name: str
    url: str

    def builder(self, sql: str, **runtime_config: Any) -> Any:
        """A builder of this test's pipeline."""
        config = self.module.RuntimeConfig(workers=1, **runtime_config)
        return self.module.PipelineBuilder(self.client, self.name, sql, runtime_config=config)

    def fields(self, selector: str = "all") -> dict[str, Any]:
        """The descriptor of this test's pipeline, as it is on the wire."""
        answer = requests.get(f"{self.url}/v0/pipelines/{self.name}", params={"selector": selector}, timeout=30)
        fields: dict[str, Any] = answer.json()
        return fields

    def refused(self, call: Callable[[], Any]) -> tuple[int, str]:
        """The status and the code with which the service refuses a call."""
        with pytest.raises(self.api_error) as caught:
            call()
        refusal: Any = caught.value
        return refusal.status_code, refusal.error_code


class _Foreign:
    """The names of the foreign package's modules in one place, as ours has them."""

    Pipeline = Pipeline
    PipelineBuilder = PipelineBuilder
    RuntimeConfig = feldera.runtime_config.RuntimeConfig
    Storage = feldera.runtime_config.Storage
    BootstrapPolicy = feldera.enums.BootstrapPolicy
    PipelineStatus = feldera.enums.PipelineStatus
    ProgramStatus = feldera.enums.ProgramStatus
    StorageStatus = feldera.enums.StorageStatus
    TransactionStatus = feldera.enums.TransactionStatus
    PipelineFieldSelector = feldera.enums.PipelineFieldSelector
    DeploymentResourcesDesiredStatus = feldera.enums.DeploymentResourcesDesiredStatus
    DeploymentRuntimeDesiredStatus = feldera.enums.DeploymentRuntimeDesiredStatus
    DeploymentResourcesStatus = feldera.enums.DeploymentResourcesStatus
    DeploymentRuntimeStatus = feldera.enums.DeploymentRuntimeStatus
    DeploymentDesiredStatus = feldera.enums.DeploymentDesiredStatus


@pytest.fixture(params=["feldera", "airflow_pipelines"])
def sdk(request: pytest.FixtureRequest, foreign: FelderaClient, served_url: str, pipeline_name: str) -> Sdk:
    """The foreign SDK, then the project's own."""
    if request.param == "feldera":
        return Sdk(_Foreign, foreign, FelderaAPIError, pipeline_name, served_url)
    ours = airflow_pipelines.PipelineClient(served_url)
    return Sdk(airflow_pipelines, ours, airflow_pipelines.PipelineAPIError, pipeline_name, served_url)


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
