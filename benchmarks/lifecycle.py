"""How long a user waits: first start on a cold machine, create and start on a warm shared host, insert until a query shows it."""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from airflow_pipelines.sdk.client import PipelineClient
from airflow_pipelines.sdk.pipeline_builder import PipelineBuilder
from airflow_pipelines.sdk.pipelines.pipeline import Pipeline
from benchmarks.measure import Measurement, timed
from benchmarks.options import Options

PROGRAM = """
create table students (id bigint, name varchar) with ('materialized' = 'true');
create table grades (student_id bigint, class string, grade decimal(5,2), class_date date) with ('materialized' = 'true');
create view avg_grade as
  select student_id, class, avg(grade) as class_avg from grades
  where class_date >= date '2025-09-01' and class_date <= date '2025-12-15' group by student_id, class;
create materialized view avg_grade_enriched as
  select name as student_name, class, class_avg from avg_grade join students on avg_grade.student_id = students.id;
"""
PATIENCE_S = 60.0
PIPELINES = 5


def measure(options: Options) -> list[Measurement]:
    """Run the life cycle in an empty home with an embedded client and its shared host."""
    with tempfile.TemporaryDirectory(prefix="pipelines-bench-") as home:
        client = PipelineClient(home=Path(home))
        try:
            return [*_cold(client), *_warm(client, PIPELINES), _insert_latency(client, options.inserts)]
        finally:
            client.close()
            subprocess.run([sys.executable, "-m", "airflow_pipelines.cli", "hosts", "stop", "--home", home], check=True)


def _cold(client: PipelineClient) -> list[Measurement]:
    with timed() as watch:
        pipeline = PipelineBuilder(client, "cold", sql=PROGRAM).create_or_replace()
        pipeline.start(timeout_s=PATIENCE_S)
    pipeline.stop(force=True)
    return [Measurement("cold_first_running_s", watch.seconds, "s", 20.0)]


def _warm(client: PipelineClient, pipelines: int) -> list[Measurement]:
    creates, starts = [], []
    for index in range(pipelines):
        with timed() as create:
            # Another text each time: a host remembers what it has compiled.
            pipeline = PipelineBuilder(client, f"warm-{index}", sql=f"{PROGRAM}-- {index}\n").create()
        with timed() as start:
            pipeline.start(timeout_s=PATIENCE_S)
        creates.append(create.seconds)
        starts.append(start.seconds)
        pipeline.stop(force=True)
    return [
        Measurement("warm_create_s_median", statistics.median(creates), "s", 0.5),
        Measurement("warm_start_to_running_s_median", statistics.median(starts), "s", 1.5),
    ]


def _insert_latency(client: PipelineClient, inserts: int) -> Measurement:
    pipeline = Pipeline.get("warm-0", client)
    pipeline.start(timeout_s=PATIENCE_S)
    pipeline.execute("insert into students values (0, 'Zoe')")
    times = []
    for index in range(inserts):
        with timed() as watch:
            pipeline.execute(f"insert into grades values (0, 'class {index}', 90.00, date '2025-10-01')")
            _until_shown(pipeline, f"class {index}")
        times.append(watch.seconds)
    pipeline.stop(force=True)
    return Measurement("insert_until_query_shows_it_s_median", statistics.median(times), "s", 0.7)


def _until_shown(pipeline: Pipeline, name: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not list(pipeline.query(f"select class from avg_grade_enriched where class = '{name}'")):
        if time.monotonic() > deadline:
            raise TimeoutError(f"the query did not show {name!r} within {PATIENCE_S:.0f} s")
