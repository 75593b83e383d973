"""What a stream program sets for its execution, when it is deployed: restarts, checkpoints, sinks that are committed, packages."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import textwrap
import time
import zipfile
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowFailException

from airflow_pipelines import Pipeline, PipelineAPIError, PipelineBuilder, PipelineClient, PipelineFailedError, PipelineStatus
from airflow_pipelines.operators.lifecycle import StartPipelineOperator
from airflow_pipelines.sdk.runtime_config import RuntimeConfig
from airflow_pipelines.sensors.pipeline import PipelineCompletionSensor
from tests.fixtures.sdk import eventually

pytestmark = [pytest.mark.integration, pytest.mark.timeout(400)]

VISITS = "create table visits (page varchar) with ('append_only' = 'true', 'materialized' = 'true');"
COUNT = """
from airflow_pipelines.datastream import StreamExecutionEnvironment, Types
from airflow_pipelines.datastream.common import RestartStrategies
from airflow_pipelines.datastream.functions import KeyedProcessFunction
from airflow_pipelines.datastream.state import ValueStateDescriptor


class Count(KeyedProcessFunction):
    def open(self, runtime_context):
        self.attempt = runtime_context.get_attempt_number()
        self.number = runtime_context.get_state(ValueStateDescriptor("number", Types.LONG()))

    def process_element(self, value, ctx):
        if value[0] == "bad":
            raise ValueError(f"no page is called {value[0]}")
        number = (self.number.value() or 0) + 1
        self.number.update(number)
        yield value[0], number, self.attempt


env = StreamExecutionEnvironment.get_execution_environment()
SETTINGS
visits = env.from_relation("visits")
counted = visits.key_by(lambda row: row[0], key_type=Types.STRING()).process(Count()).name("Count").uid("count")
counted.to_relation("counts", {"page": "STRING", "n": "BIGINT", "attempt": "INT"}, primary_key=["page"]).uid("counts")
env.execute()
"""
WRITE = """
from airflow_pipelines.datastream import StreamExecutionEnvironment
from airflow_pipelines.datastream.common import Encoder
from airflow_pipelines.datastream.connectors import FileSink
from airflow_pipelines.datastream.functions import MapFunction
from airflow_pipelines.datastream.common import RestartStrategies


class Once(MapFunction):
    def open(self, runtime_context):
        self.attempt = runtime_context.get_attempt_number()

    def map(self, value):
        if value == 7 and self.attempt == 0:
            raise RuntimeError("not at first")
        return str(value)


env = StreamExecutionEnvironment.get_execution_environment()
env.set_restart_strategy(RestartStrategies.fixed_delay_restart(1, 10))
numbers = env.from_collection(list(range(10))).uid("numbers").map(Once()).uid("once")
numbers.sink_to(FileSink.for_row_format("FOLDER", Encoder.simple_string_encoder()).build()).uid("files")
numbers.print().uid("printed")
env.execute()
"""
COMMIT = """
from pathlib import Path
from airflow_pipelines.datastream import SinkFunction, StreamExecutionEnvironment


class Careful(SinkFunction):
    def open(self, runtime_context):
        self.taken = []

    def invoke(self, value, context=None):
        self.taken.append(value[0])

    def prepare_commit(self):
        taken, self.taken = self.taken, []
        return taken or None

    def commit(self, prepared):
        if not Path("FOLDER/allowed").exists():
            raise PermissionError("the door is closed")
        with Path("FOLDER/out").open("a") as file:
            file.write(",".join(prepared) + ";")


env = StreamExecutionEnvironment.get_execution_environment()
env.from_relation("visits").add_sink(Careful()).uid("careful")
env.execute()
"""


def _made(client: PipelineClient, name: str, program: str, sql: str = VISITS, **settings: Any) -> Pipeline:
    return PipelineBuilder(client, name, sql, stream_program={"program.py": program}, **settings).create(timeout_s=120)


def _counting(settings: str) -> str:
    return COUNT.replace("SETTINGS", settings)


def _visit(pipeline: Pipeline, *pages: str) -> None:
    pipeline.input_json("visits", [{"page": page} for page in pages])


def _counts(pipeline: Pipeline) -> dict[str, tuple[int, int]]:
    return {row["page"]: (row["n"], row["attempt"]) for row in pipeline.query("select * from counts")}


def _log(pipeline: Pipeline, until: str) -> str:
    lines: list[str] = []
    for line in pipeline.logs():
        lines.append(line)
        if until in line:
            break
    return "\n".join(lines)


def _lines(folder: Path) -> list[int]:
    """What sinks have made visible."""
    files = (path for path in folder.rglob("*") if path.is_file() and not path.name.startswith("."))
    return sorted(int(line) for path in files for line in path.read_text().split())


def test_a_program_is_restarted_as_often_as_it_says(embedded_client: PipelineClient, pipeline_name: str) -> None:
    program = _counting("env.set_restart_strategy(RestartStrategies.fixed_delay_restart(2, 200))")
    pipeline = _made(embedded_client, pipeline_name, program)
    pipeline.start(timeout_s=120)
    _visit(pipeline, "a", "a", "b")
    pipeline.checkpoint(wait=True, timeout_s=60)
    _visit(pipeline, "a")
    for attempt in (1, 2):
        with pytest.raises(PipelineAPIError, match="no page is called bad"):
            _visit(pipeline, "bad", "b")
        eventually(lambda: pipeline.status() is PipelineStatus.RUNNING, 60)
        assert not pipeline.deployment_error()
        _visit(pipeline, "a")
        assert _counts(pipeline)["a"] == (3 + attempt, attempt)
        assert _counts(pipeline)["b"][0] == 1, "nothing of the step that failed was kept"
    with pytest.raises(PipelineFailedError, match="no page is called bad"):
        _visit(pipeline, "bad")
    assert pipeline.status() is PipelineStatus.STOPPED
    log = _log(pipeline, "now Stopped")
    assert re.findall(r"restarted: (attempt \d of \d in [\d.]+ s): The step failed", log) == [
        "attempt 2 of 3 in 0.2 s",
        "attempt 3 of 3 in 0.2 s",
    ]
    assert log.count("now Running") == 3
    pipeline.start(timeout_s=120)
    assert _counts(pipeline)["a"][0] == 5


def test_a_stop_ends_the_wait_for_the_next_attempt(embedded_client: PipelineClient, pipeline_name: str) -> None:
    program = _counting("env.set_restart_strategy(RestartStrategies.failure_rate_restart(2, 3600000, 3600000))")
    pipeline = _made(embedded_client, pipeline_name, program)
    pipeline.start(timeout_s=120)
    _visit(pipeline, "a")
    pipeline.input_json("visits", [{"page": "bad"}], wait=False)
    eventually(lambda: pipeline.status() is PipelineStatus.INITIALIZING, 20)
    began = time.monotonic()
    pipeline.stop(force=False, timeout_s=60)
    assert time.monotonic() - began < 30
    assert not pipeline.deployment_error()
    assert "attempt 2 in 3600 s (failures in the last 3600 s: 1, allowed: 2)" in _log(pipeline, "now Suspended")
    pipeline.start(timeout_s=120)
    assert _counts(pipeline) == {"a": (1, 0)}


@pytest.mark.parametrize("storage", [True, False])
def test_sinks_show_all_when_the_inputs_end(
    embedded_client: PipelineClient, pipeline_name: str, tmp_path: Path, storage: bool
) -> None:
    settings: dict[str, Any] = {} if storage else {"runtime_config": RuntimeConfig(storage=False)}
    pipeline = _made(embedded_client, pipeline_name, WRITE.replace("FOLDER", str(tmp_path)), sql="", **settings)
    pipeline.start(timeout_s=120)
    pipeline.wait_for_completion(timeout_s=60)
    assert _lines(tmp_path) == list(range(10)), "visible as soon as it is complete, and each once, although it was restarted"
    assert "attempt 2 of 2" in _log(pipeline, "stdout: 9")
    pipeline.stop(force=not storage, timeout_s=60)
    assert _lines(tmp_path) == list(range(10))


@pytest.mark.core(slow_because="a stream program is started again")
def test_what_a_sink_could_not_commit_is_committed_by_the_next_start(
    embedded_client: PipelineClient, pipeline_name: str, tmp_path: Path
) -> None:
    pipeline = _made(embedded_client, pipeline_name, COMMIT.replace("FOLDER", str(tmp_path)))
    pipeline.start(timeout_s=120)
    _visit(pipeline, "a", "b")
    pipeline.checkpoint(wait=False)
    eventually(lambda: pipeline.status() is PipelineStatus.STOPPED, 60)
    error = pipeline.deployment_error()
    assert error is not None
    for text in (
        "could not make visible what its sinks have written",
        "PermissionError: the door is closed",
        "program.py:19",
        "in operator",
    ):
        assert text in error["message"]
    (tmp_path / "allowed").touch()
    pipeline.start(timeout_s=120)
    assert (tmp_path / "out").read_text() == "a,b;"
    _visit(pipeline, "c")
    pipeline.stop(force=False, timeout_s=60)
    assert (tmp_path / "out").read_text() == "a,b;c;"


def test_a_program_says_how_often_checkpoints_are_taken_and_goes_on_from_any_of_them(
    embedded_client: PipelineClient, pipeline_name: str
) -> None:
    pipeline = _made(embedded_client, pipeline_name, _counting("env.enable_checkpointing(1000)"))
    pipeline.start(timeout_s=120)
    _visit(pipeline, "a", "a")
    eventually(lambda: len(pipeline.checkpoints()) == 1, 30)
    (first,) = pipeline.checkpoints()
    _visit(pipeline, "a", "b")
    eventually(lambda: len(pipeline.checkpoints()) == 2, 30)
    pipeline.stop(force=True, timeout_s=60)
    pipeline.start(from_checkpoint=first.uuid, timeout_s=120)
    assert _counts(pipeline) == {"a": (2, 0)}
    _visit(pipeline, "a")
    assert _counts(pipeline) == {"a": (3, 0)}


def test_packages_and_modules_that_a_program_needs(embedded_client: PipelineClient, pipeline_name: str, tmp_path: Path) -> None:
    wheel = _wheel(tmp_path, "tiny_greeting", "def greet(name):\n    return 'hello ' + name\n")
    program = textwrap.dedent("""
        from airflow_pipelines.datastream import StreamExecutionEnvironment
        def greeted(value):
            import shouting, tiny_greeting
            return (shouting.loud(tiny_greeting.greet(value)),)
        env = StreamExecutionEnvironment.get_execution_environment()
        env.set_python_requirements("requirements.txt")
        env.add_python_file("helpers")
        names = env.from_collection(["ada"]).uid("names")
        names.map(greeted).uid("greeted").to_relation("greetings", {"text": "STRING"}).uid("out")
        env.execute()
        """)
    files = {
        "program.py": program,
        "requirements.txt": f"tiny_greeting @ file://{wheel}\n",
        "helpers/shouting.py": "def loud(text):\n    return text.upper()\n",
    }
    pipeline = PipelineBuilder(embedded_client, pipeline_name, "", stream_program=files).create(timeout_s=120)
    pipeline.start(timeout_s=300)
    pipeline.wait_for_completion(timeout_s=60)
    assert list(pipeline.query("select * from greetings")) == [{"text": "HELLO ADA"}]
    pipeline.stop(force=False, timeout_s=60)
    pipeline.modify(
        stream_program={**files, "requirements.txt": f"no_such_greeting @ file://{tmp_path}/no_such-1-py3-none-any.whl\n"}
    )
    with pytest.raises(PipelineFailedError, match="no_such_greeting"):
        pipeline.start(timeout_s=300)


UNPACKED = """
import sys
from pathlib import Path
from airflow_pipelines.datastream import StreamExecutionEnvironment
from airflow_pipelines.datastream.functions import MapFunction

env = StreamExecutionEnvironment.get_execution_environment()
env.add_python_archive(ARCHIVE, "model")
env.register_cached_file(ARCHIVE, "packed")
env.set_python_executable(EXECUTABLE)
words = env.from_collection(["ada"]).uid("words")


def described(word):
    import only_there
    return word, Path("model/weights.txt").read_text(), only_there.WHERE, sys.prefix


class Packed(MapFunction):
    def open(self, runtime_context):
        self.size = Path(runtime_context.get_distributed_cache().get_file("packed")).stat().st_size

    def map(self, value):
        return *value, self.size


schema = {"word": "STRING", "weights": "STRING", "package": "STRING", "prefix": "STRING", "size": "BIGINT"}
words.map(described).uid("described").map(Packed()).uid("packed").to_relation("described", schema).uid("out")
env.execute()
"""


def test_an_archive_is_unpacked_and_another_interpreter_runs_the_functions(
    embedded_client: PipelineClient, pipeline_name: str, tmp_path: Path
) -> None:
    archive = tmp_path / "weights.zip"
    with zipfile.ZipFile(archive, "w") as opened:
        opened.writestr("weights.txt", "1 2 3")
    other = tmp_path / "other"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(other)], check=True)
    (packages,) = other.glob("lib/python*/site-packages")
    (packages / "only_there.py").write_text("WHERE = 'in the other interpreter'")
    program = UNPACKED.replace("EXECUTABLE", repr(str(other / "bin" / "python"))).replace("ARCHIVE", repr(str(archive)))
    pipeline = _made(embedded_client, pipeline_name, program, sql="")
    pipeline.start(timeout_s=300)
    pipeline.wait_for_completion(timeout_s=60)
    (row,) = pipeline.query("select * from described")
    assert (row["word"], row["weights"], row["package"]) == ("ada", "1 2 3", "in the other interpreter")
    assert row["prefix"] != sys.prefix
    assert row["size"] == archive.stat().st_size
    pipeline.stop(force=False, timeout_s=60)
    pipeline.modify(
        stream_program={"program.py": UNPACKED.replace("EXECUTABLE", "'/no/python'").replace("ARCHIVE", repr(str(archive)))}
    )
    with pytest.raises(PipelineFailedError, match="There is no Python executable '/no/python'"):
        pipeline.start(timeout_s=120)


READ = """
import os
from pathlib import Path
from airflow_pipelines.datastream import StreamExecutionEnvironment
from airflow_pipelines.datastream.common import RestartStrategies
from airflow_pipelines.datastream.functions import SourceFunction

FAILURES = Path("FOLDER/failures")


class Unsteady(SourceFunction):
    is_bounded = True
    next = 0

    def snapshot_state(self):
        return self.next

    def restore_state(self, state):
        self.next = state

    def run(self, ctx):
        for number in range(self.next, 6):
            if number == 3 and len(FAILURES.read_text()) < MOST:
                FAILURES.write_text(FAILURES.read_text() + "x")
                raise ConnectionError("the source is away")
            self.next = number + 1
            yield number


env = StreamExecutionEnvironment.get_execution_environment()
env.set_restart_strategy(RestartStrategies.fixed_delay_restart(2, 1500))
env.add_source(Unsteady()).uid("unsteady").to_relation("numbers", {"n": "INT"}).uid("numbers")
env.execute()
"""


@pytest.mark.parametrize("failures", [2, 3])
def test_a_source_that_fails_is_opened_again_and_airflow_waits_meanwhile(
    embedded_client: PipelineClient,
    warm_home: Path,
    pipeline_name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    failures: int,
) -> None:
    connection = {"conn_type": "airflow_pipelines", "extra": {"home": str(warm_home)}}
    monkeypatch.setenv("AIRFLOW_CONN_AIRFLOW_PIPELINES_DEFAULT", json.dumps(connection))
    (tmp_path / "failures").write_text("")
    program = READ.replace("FOLDER", str(tmp_path)).replace("MOST", str(failures))
    pipeline = _made(embedded_client, pipeline_name, program, sql="")
    StartPipelineOperator(task_id="start", pipeline_name=pipeline_name, timeout=120).execute({})
    processed = PipelineCompletionSensor(task_id="processed", pipeline_name=pipeline_name, poke_interval=0.1, timeout=60)
    if failures > 2:
        with pytest.raises(AirflowFailException, match="the source is away"):
            processed.execute({})
    else:
        processed.execute({})
        assert sorted(row["n"] for row in pipeline.query("select n from numbers")) == list(range(6))
    log = _log(pipeline, "now Stopped" if failures > 2 else "end of input")
    assert re.findall(r"restarted: attempt (\d) of 3 in 1.5 s: .*the source is away", log) == ["2", "3"]
    restarts = [
        event["deployment_runtime_status_details"]["restart"]
        for event in reversed(pipeline.events(selector="all"))
        if "restart" in (event["deployment_runtime_status_details"] or {})
    ]
    assert [(restart["attempt"], restart["delay_ms"]) for restart in restarts] == [(2, 1500), (3, 1500)]
    assert all("the source is away" in restart["reason"] for restart in restarts)


def _wheel(folder: Path, name: str, code: str) -> Path:
    path = folder / f"{name}-1.0-py3-none-any.whl"
    info = f"{name}-1.0.dist-info"
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.writestr(f"{name}.py", code)
        wheel.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", f"{name}.py,,\n{info}/METADATA,,\n{info}/WHEEL,,\n{info}/RECORD,,\n")
    return path
