"""The trigger that waits until the service can compile."""

from __future__ import annotations

from typing import Any

from airflow_pipelines.sdk.client import AsyncPipelineClient
from airflow_pipelines.sdk.wire import path_of
from airflow_pipelines.triggers.request import RequestTrigger


class CompilerTrigger(RequestTrigger):
    """The trigger that has the service compile a minimal program, which starts a host if there is none."""

    @property
    def subject(self) -> str:
        """The compiler, for messages."""
        return f"the compiler for pipeline {self.pipeline_name!r}"

    async def ask(self, client: AsyncPipelineClient) -> dict[str, Any]:
        """Compile the minimal program."""
        await client.request("POST", path_of("validate_program"), json={"program_code": PROBE}, outage_budget_s=0)
        return {}


PROBE = "create table probe (id int);"
"""The minimal program, which is independent of the one to deploy, and compiles as soon as anything does."""
