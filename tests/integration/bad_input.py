"""What the tests of bad input share."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from airflow_pipelines import Pipeline, PipelineClient

INTERNALS = re.compile(
    r"Traceback|sqlglot|org\.apache|at java|JVM|SQLSTATE|spark\.sql|'?(Project|LocalRelation|SubqueryAlias)\b|<class"
)
"""What no user should have to read."""
T = "create table t (i int);\n"


def file_connector(name: str, path: Path, format_name: str = "csv") -> dict[str, Any]:
    transport = {"name": "file_input", "config": {"path": str(path)}}
    return {"name": name, "transport": transport, "format": {"name": format_name}}


def table_with(connectors: list[dict[str, Any]] | str) -> str:
    text = connectors if isinstance(connectors, str) else json.dumps(connectors)
    return f"create table t (id bigint not null, v decimal(6, 2), s varchar) with (\n'connectors' = '{text}');"


def named(client: PipelineClient, name: str) -> Pipeline:
    return Pipeline.get(name, client)
