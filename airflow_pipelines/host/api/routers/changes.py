"""The comparison of programs before one replaces another."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from pydantic import BaseModel

from airflow_pipelines.host.api.routers.common import HostFleet, Runner, slowly
from airflow_pipelines.host.api.routers.deployments import CompileRequest
from airflow_pipelines.host.changes.bootstrap import compare_programs
from airflow_pipelines.program.sources import ProgramSource, SourceFile

router = APIRouter()


class DiffRequest(BaseModel):
    """Two programs to compare."""

    old: CompileRequest
    new: CompileRequest


class PlanRequest(BaseModel):
    """The fields in which a program differs from the one that runs."""

    program_code: str | None = None
    udf_python: str | None = None
    stream_files: dict[str, str] | None = None
    stream_arguments: list[str] | None = None

    def applied_to(self, source: ProgramSource) -> ProgramSource:
        """Return the source with these fields."""
        files = None if self.stream_files is None else tuple(SourceFile(*each) for each in self.stream_files.items())
        arguments = None if self.stream_arguments is None else tuple(self.stream_arguments)
        return source.with_fields(
            sql=self.program_code, python_functions=self.udf_python, stream_files=files, stream_arguments=arguments
        )


@router.post("/diff")
async def diff(request: Request, fleet: HostFleet, body: DiffRequest) -> dict[str, Any]:
    """Return the difference between two programs."""

    def compare() -> dict[str, Any]:
        new = fleet.compile(body.new.source)
        old = new if body.old == body.new else fleet.compile(body.old.source)
        return compare_programs(old, new).to_wire()

    return await slowly(request, compare)


@router.post("/deployments/{deployment_id}/plan")
async def plan(request: Request, fleet: HostFleet, runner: Runner, body: PlanRequest) -> dict[str, Any]:
    """Return the consequences of going on with another program. The running one is not stopped."""

    def plan() -> dict[str, Any]:
        live = runner.requests.serving()
        source = body.applied_to(live.identity.source)
        compiled = live.program if source == live.identity.source else fleet.compile(source)
        return runner.requests.plan(source, compiled).to_wire()

    return await slowly(request, plan)
