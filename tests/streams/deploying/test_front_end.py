"""Another interface to streams than the data stream API: all that it needs, and no Spark."""

from __future__ import annotations

import gzip
import subprocess
import sys
from pathlib import Path

import pytest

from airflow_pipelines import PipelineBuilder, PipelineClient
from airflow_pipelines.compiler.stream_binding import bind_streams
from airflow_pipelines.program.sources import SourceFile

FRAMES = Path(__file__).with_name("frames.py")
PROGRAM = """
from frames import Frame

frame = Frame.read({path!r}, {{"fruit": "VARCHAR", "number": "BIGINT"}})
frame.apply(lambda row: {{**row, "number": 2 * row["number"]}}).save("doubled", {{"fruit": "STRING", "number": "BIGINT"}})
"""


@pytest.fixture
def program(tmp_path: Path) -> dict[str, str]:
    path = tmp_path / "fruits.json.gz"
    path.write_bytes(gzip.compress(b'{"fruit": "pears", "number": 3}\n{"fruit": "apples", "number": 4}\n'))
    return {"main.py": PROGRAM.format(path=str(path)), "frames.py": FRAMES.read_text()}


@pytest.mark.processes
def test_a_front_end_describes_its_programs_by_the_core_of_streams(program: dict[str, str]) -> None:
    bound = bind_streams([SourceFile(path, text) for path, text in program.items()]).program
    assert [(each.name, each.kind) for each in bound.operators] == [
        ("rows", "Data Source"),
        ("apply", "Map"),
        ("save", "Data Sink"),
    ]
    assert [(each.name, each.kind, each.is_bounded) for each in bound.sources] == [("rows", "RowsOfFile", True)]
    assert [(each.relation, each.columns) for each in bound.outputs] == [("doubled", (("fruit", "STRING"), ("number", "BIGINT")))]


@pytest.mark.processes
def test_a_front_end_needs_neither_spark_nor_the_data_stream_api() -> None:
    loaded = "print([name for name in sys.modules if name.split('.')[0] in ('pyspark', 'py4j', 'airflow', 'sqlglot')"
    script = f"import sys; import frames; {loaded} or name.startswith('airflow_pipelines.datastream')])"
    done = subprocess.run([sys.executable, "-c", script], cwd=FRAMES.parent, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.core(slow_because="a stream program is started")
@pytest.mark.timeout(400)
def test_a_program_of_another_front_end_runs_as_a_pipeline(
    embedded_client: PipelineClient, pipeline_name: str, program: dict[str, str]
) -> None:
    sql = "create materialized view most as select fruit, number from doubled where number > 6;"
    pipeline = PipelineBuilder(embedded_client, pipeline_name, sql, stream_program=program).create(timeout_s=120)
    pipeline.start(timeout_s=120)
    pipeline.wait_for_completion(timeout_s=60)
    assert sorted(pipeline.query("select * from doubled"), key=lambda row: row["fruit"]) == [
        {"fruit": "apples", "number": 8},
        {"fruit": "pears", "number": 6},
    ]
    assert list(pipeline.query("select * from most")) == [{"fruit": "apples", "number": 8}]
    pipeline.stop(force=True, timeout_s=60)
