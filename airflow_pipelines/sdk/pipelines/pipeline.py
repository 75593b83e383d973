"""The pipeline object of the SDK."""

from __future__ import annotations

from typing import Any

from airflow_pipelines.contract.enums import PipelineFieldSelector
from airflow_pipelines.sdk.client import PipelineClient
from airflow_pipelines.sdk.output_handler import OutputHandler
from airflow_pipelines.sdk.pipelines.checkpoints import PipelineCheckpoints
from airflow_pipelines.sdk.pipelines.clock import PipelineClock
from airflow_pipelines.sdk.pipelines.diagnostics import PipelineDiagnostics
from airflow_pipelines.sdk.pipelines.program_changes import PipelineProgramChanges
from airflow_pipelines.sdk.pipelines.queries import PipelineQueries
from airflow_pipelines.sdk.pipelines.transactions import PipelineTransactions


class Pipeline(
    PipelineQueries,
    PipelineCheckpoints,
    PipelineClock,
    PipelineProgramChanges,
    PipelineTransactions,
    PipelineDiagnostics,
):
    """A long-lived, stateful pipeline of a service.

    Get one with :meth:`get`, :meth:`all` or a :class:`~airflow_pipelines.sdk.pipeline_builder.PipelineBuilder`. The object holds no
    significant state: every method asks the service, and any number of objects, processes and machines may use the same pipeline.

    :param client: the client to reach the service with
    """

    def __init__(self, client: PipelineClient) -> None:
        super().__init__(client)
        self._listeners: list[OutputHandler] = []

    @staticmethod
    def get(name: str, client: PipelineClient) -> Pipeline:
        """Return a pipeline by its name.

        :param name: the name
        :param client: the client to reach the service with
        :returns: the pipeline
        :raises PipelineAPIError: with code ``UnknownPipelineName`` when there is none of that name
        """
        pipeline = Pipeline(client)
        pipeline._name = name
        pipeline.refresh(PipelineFieldSelector.STATUS)
        return pipeline

    @staticmethod
    def all(client: PipelineClient) -> list[Pipeline]:
        """Return all pipelines of a service.

        :param client: the client to reach the service with
        :returns: the pipelines, as the service lists them
        """
        return [Pipeline._of(descriptor, client) for descriptor in client.get("/v0/pipelines", params={"selector": "status"})]

    @classmethod
    def _of(cls, descriptor: dict[str, Any], client: PipelineClient) -> Pipeline:
        pipeline = cls(client)
        pipeline._name = descriptor["name"]
        pipeline._descriptor = dict(descriptor)
        return pipeline

    def __repr__(self) -> str:
        return f"Pipeline({self._name!r}, client={self.client!r})"
