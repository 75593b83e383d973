"""The trigger that waits until the service can compile."""

from __future__ import annotations

from typing import Any

from airflow_pipelines.sdk.client import AsyncPipelineClient
from airflow_pipelines.sdk.wire import path_of
from airflow_pipelines.triggers.asking import AskingTrigger


class CompilerTrigger(AskingTrigger):
    """Has the service compile next to nothing, which starts a host where there is none and is answered when it is its turn."""

    @property
    def subject(self) -> str:
        """The compiler."""
        return f"the compiler for pipeline {self.pipeline_name!r}"

    async def ask(self, client: AsyncPipelineClient) -> dict[str, Any]:
        """Compile."""
        await client.request("POST", path_of("validate_program"), json={"program_code": PROBE}, outage_budget_s=0)
        return {}


PROBE = "create table probe (id int);"
"""A program that says nothing of the one that is to be deployed, and compiles as soon as anything does."""
