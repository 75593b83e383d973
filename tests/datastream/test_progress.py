from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from airflow_pipelines.datastream.progress import RunProgress
from airflow_pipelines.streams.elements import MAX_TIMESTAMP

PROGRAM = """
import time
from airflow_pipelines.datastream import StreamExecutionEnvironment, WatermarkGenerator, WatermarkStrategy
from airflow_pipelines.datastream.functions import MapFunction, SourceFunction
from airflow_pipelines.datastream.state import ValueStateDescriptor


class Ticks(SourceFunction):
    def run(self, ctx):
        for number in range(12):
            time.sleep(0.2)
            yield number


class Remember(MapFunction):
    def open(self, runtime_context):
        self.text = runtime_context.get_state(ValueStateDescriptor("text"))

    def map(self, value):
        self.text.update("x" * 10_000)
        return value


class Behind(WatermarkGenerator):
    def on_event(self, event, event_timestamp, output):
        output.emit_watermark(event_timestamp - 120_000)

    def on_periodic_emit(self, output):
        pass


env = StreamExecutionEnvironment.get_execution_environment()
strategy = WatermarkStrategy.for_generator(Behind).with_timestamp_assigner(lambda _, __: int(time.time() * 1000))
ticks = env.add_source(Ticks()).assign_timestamps_and_watermarks(strategy)
ticks.key_by(lambda number: number).map(Remember()).print("tick")
env.execute("ticks")
"""


def _run(program: Path, **streams: Any) -> subprocess.Popen[bytes]:
    environment = {name: value for name, value in os.environ.items() if name != "CI"} | {"TERM": "xterm"}
    return subprocess.Popen([sys.executable, program], env=environment, **streams)


def _read_all(terminal: int) -> str:
    said = b""
    while True:
        try:
            read = os.read(terminal, 65536)
        except OSError:  # the end of a pseudo terminal
            read = b""
        if not read:
            return said.decode()
        said += read


@pytest.mark.processes
def test_a_program_on_a_terminal_says_how_far_it_is(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    reader, writer = pty.openpty()
    process = _run(tmp_path / "program.py", stdout=writer, stderr=writer)
    os.close(writer)
    said = _read_all(reader)
    assert process.wait(60) == 0
    shown = re.findall(r"ticks: (\d+) elements, (\d+)/s, event time 2.0 min behind, state (\d+)", said)
    assert len(shown) > 2
    assert {int(rate) for _, rate, _ in shown} <= set(range(2, 9))
    assert [int(elements) for elements, _, _ in shown] == sorted(int(elements) for elements, _, _ in shown)
    assert all(int(size) >= 10 for _, _, size in shown)
    visible = [line.rpartition("\x1b[K")[2] for line in said.split("\r\n")]
    assert visible == [*(f"tick> {number}" for number in range(12)), ""]


@pytest.mark.processes
def test_a_program_in_a_pipe_says_nothing(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    process = _run(tmp_path / "program.py", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    printed, errors = process.communicate(timeout=60)
    assert printed.decode() == "".join(f"tick> {number}\n" for number in range(12))
    assert errors == b""


class _Run:
    def __init__(self) -> None:
        self.elements_read = 0
        self.reached: int | None = None
        self.looks = 0
        self.clock = 0.0

    def event_time(self) -> int | None:
        return self.reached

    def state_bytes(self) -> int:
        self.looks += 1
        if self.looks > 1:
            self.clock += 0.11
        return 1_234_567


def test_what_the_line_says() -> None:
    run: Any = _Run()
    progress = RunProgress("fraud", 100.0)
    run.elements_read = 5_000
    assert progress.line(run, 102.0) == "fraud: 5,000 elements, 2,500/s, state 1.2 MiB"
    run.reached = MAX_TIMESTAMP
    assert progress.line(run, 103.0) == "fraud: 5,000 elements, 0/s, event time at its end, state 1.2 MiB"
    run.elements_read = 10  # started again from a checkpoint
    assert progress.line(run, 104.0).startswith("fraud: 10 elements, 0/s")
    assert RunProgress(None, 0.0).line(run, 1.0).startswith("10 elements, 10/s")


def test_the_size_is_looked_for_rarely_where_that_takes_long(monkeypatch: pytest.MonkeyPatch) -> None:
    run: Any = _Run()
    monkeypatch.setattr(time, "monotonic", lambda: run.clock)
    progress = RunProgress(None, 0.0)
    looked = []
    for now in range(30):
        before = run.looks
        progress.line(run, float(now))
        if run.looks > before:
            looked.append(now)
    assert looked == [0, 5, 16, 27], "after 5 s, and then a hundredth of the time"
