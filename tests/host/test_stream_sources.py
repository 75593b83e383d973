"""Sources of stream programs in a pipeline: read once over kills, told what is durable, paused, ended, and what stops it."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from airflow_pipelines.program.sources import SourceFile
from tests.host.driver import Make, Pipeline

_PROGRAM = """
import time
from pathlib import Path

from airflow_pipelines.datastream import Row, StreamExecutionEnvironment
from airflow_pipelines.datastream.functions import SourceFunction

FOLDER = Path({folder!r})


class Tap(SourceFunction):
    def __init__(self):
        self.number = 0

    def run(self, ctx):
        while not (FOLDER / "end").exists():
            if self.number < int((FOLDER / "until").read_text()):
                self.number += 1
                (FOLDER / "given").write_text(str(self.number))
                yield self.number
            elif (FOLDER / "fail").exists():
                raise ValueError("the tap is broken")
            elif (FOLDER / "wait").exists():
                time.sleep(3600)
            else:
                yield None

    def snapshot_state(self):
        return self.number

    def restore_state(self, state):
        self.number = state

    def notify_checkpoint_complete(self, state):
        (FOLDER / "committed").write_text(str(state))


env = StreamExecutionEnvironment.get_execution_environment()
tap = env.add_source(Tap(), "tap").uid("tap")
tap.map(lambda number: Row(n=number)).to_relation("numbers", {{"n": "BIGINT"}})
hundred = env.from_collection(list(range(100))).uid("hundred")
hundred.map(lambda number: Row(n=number)).to_relation("hundred", {{"n": "BIGINT"}})
env.execute("taps")
"""
_SQL = """
CREATE MATERIALIZED VIEW seen AS SELECT COUNT(*) AS n, COUNT(DISTINCT n) AS ns, MAX(n) AS most FROM numbers;
CREATE MATERIALIZED VIEW all_hundred AS SELECT COUNT(*) AS n FROM hundred;
"""
_TAP = "stream source tap.reader"
_LIMIT_S = 90.0


def _made(make: Make, folder: Path, until: int, **runtime_config: Any) -> Pipeline:
    folder = folder / "tap"
    folder.mkdir()
    (folder / "until").write_text(str(until))
    pipeline = make(_SQL, **runtime_config)
    pipeline.stream_files = (SourceFile("program.py", _PROGRAM.format(folder=str(folder))),)
    return pipeline


def _until(condition: Callable[[], bool], pipeline: Pipeline) -> None:
    end = time.monotonic() + _LIMIT_S
    while not condition():
        assert time.monotonic() < end, pipeline.log
        time.sleep(0.05)


def _seen(pipeline: Pipeline) -> tuple[int, int, int]:
    rows = pipeline.query("SELECT * FROM seen")
    return (rows[0]["n"], rows[0]["ns"], rows[0]["most"]) if rows else (0, 0, 0)


def _committed(folder: Path) -> str | None:
    path = folder / "tap" / "committed"
    return path.read_text() if path.exists() else None


def _tap(pipeline: Pipeline) -> dict[str, Any]:
    return next(wire for wire in pipeline.stats()["inputs"] if wire["endpoint_name"] == _TAP)


def test_elements_come_once_over_a_kill_and_the_source_hears_what_is_durable(make: Make, tmp_path: Path) -> None:
    pipeline = _made(make, tmp_path, 50, fault_tolerance={"model": "at_least_once", "checkpoint_interval_secs": None})
    pipeline.start()
    _until(lambda: _seen(pipeline) == (50, 50, 50), pipeline)
    _until(lambda: pipeline.query("SELECT n FROM all_hundred") == [{"n": 100}], pipeline)
    pipeline.checkpoint()
    _until(lambda: _committed(tmp_path) == "50", pipeline)
    wire = _tap(pipeline)
    assert wire["metrics"]["total_records"] == 50
    assert wire["metrics"]["total_bytes"] > 50
    assert not wire["metrics"]["end_of_input"]
    hundred = next(each for each in pipeline.stats()["inputs"] if each["endpoint_name"] == "stream source hundred.reader")
    assert hundred["metrics"]["total_records"] == 100
    assert hundred["metrics"]["end_of_input"]
    (tmp_path / "tap" / "until").write_text("80")
    _until(lambda: _seen(pipeline) == (80, 80, 80), pipeline)
    # A pipeline with a stream program keeps its journal, whatever its model is.
    _until(lambda: _committed(tmp_path) == "80", pipeline)
    pipeline.kill()
    (tmp_path / "tap" / "until").write_text("90")
    pipeline.start()
    _until(lambda: _seen(pipeline) == (90, 90, 90), pipeline)
    _until(lambda: _committed(tmp_path) == "90", pipeline)
    assert not pipeline.stats()["global_metrics"]["pipeline_complete"]
    (tmp_path / "tap" / "end").touch()
    stats = pipeline.await_complete()
    assert stats["global_metrics"]["total_completed_records"] == 190
    assert _seen(pipeline) == (90, 90, 90)
    assert pipeline.query("SELECT n FROM all_hundred") == [{"n": 100}]


def test_with_a_journal_nothing_is_read_again(make: Make, tmp_path: Path) -> None:
    pipeline = _made(make, tmp_path, 10, fault_tolerance={"model": "exactly_once", "checkpoint_interval_secs": None})
    pipeline.start()
    _until(lambda: _seen(pipeline) == (10, 10, 10), pipeline)
    _until(lambda: _committed(tmp_path) == "10", pipeline)
    pipeline.kill()
    (tmp_path / "tap" / "given").unlink()
    pipeline.start()
    _until(lambda: _seen(pipeline) == (10, 10, 10), pipeline)
    assert not (tmp_path / "tap" / "given").exists()
    (tmp_path / "tap" / "until").write_text("20")
    _until(lambda: _seen(pipeline) == (20, 20, 20), pipeline)


def test_a_paused_pipeline_reads_nothing_more(make: Make, tmp_path: Path) -> None:
    pipeline = _made(make, tmp_path, 5)
    pipeline.start()
    _until(lambda: _seen(pipeline) == (5, 5, 5), pipeline)
    assert pipeline.post("pause").status_code == 202
    pipeline.wait_for("Paused")
    (tmp_path / "tap" / "until").write_text("1000000")
    time.sleep(1.0)
    given = int((tmp_path / "tap" / "given").read_text())
    time.sleep(1.0)
    # What was asked for before the pause may still come.
    assert int((tmp_path / "tap" / "given").read_text()) == given < 100_000
    assert _seen(pipeline) == (5, 5, 5)
    assert pipeline.post("resume").status_code == 202
    _until(lambda: _seen(pipeline)[0] > given, pipeline)


def test_a_source_that_fails_stops_the_pipeline_which_goes_on_when_it_is_mended(make: Make, tmp_path: Path) -> None:
    pipeline = _made(make, tmp_path, 20)
    pipeline.start()
    _until(lambda: _seen(pipeline) == (20, 20, 20), pipeline)
    (tmp_path / "tap" / "fail").touch()
    _until(lambda: pipeline.statuses()[-1] == "Stopped", pipeline)
    error = pipeline.transitions()[-1].error
    assert error is not None
    message = error["message"]
    assert "ValueError: the tap is broken (program.py:" in message
    assert "in operator 'Source: tap', reading split 0" in message
    assert 'raise ValueError("the tap is broken")' in message
    assert "airflow_pipelines" not in message
    assert message in pipeline.log
    pipeline.kill()
    (tmp_path / "tap" / "fail").unlink()
    (tmp_path / "tap" / "given").unlink()
    (tmp_path / "tap" / "until").write_text("21")
    pipeline.start()
    _until(lambda: _seen(pipeline) == (21, 21, 21), pipeline)
    # The steps before the failure were kept.
    assert (tmp_path / "tap" / "given").read_text() == "21"


def test_a_source_that_waits_for_ever_holds_up_neither_steps_nor_the_stop(make: Make, tmp_path: Path) -> None:
    pipeline = _made(make, tmp_path, 3)
    (tmp_path / "tap" / "wait").touch()
    pipeline.start()
    _until(lambda: _seen(pipeline) == (3, 3, 3), pipeline)
    _until(lambda: pipeline.query("SELECT n FROM all_hundred") == [{"n": 100}], pipeline)
    began = time.monotonic()
    pipeline.suspend()
    assert time.monotonic() - began < 30
    (tmp_path / "tap" / "wait").unlink()
    (tmp_path / "tap" / "until").write_text("4")
    pipeline.start()
    _until(lambda: _seen(pipeline) == (4, 4, 4), pipeline)
