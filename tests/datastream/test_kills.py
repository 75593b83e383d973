"""A program that is killed again and again, and goes on from its newest checkpoint, writes each element exactly once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FILES, LINES, KEYS = 4, 20_000, 100

PROGRAM = """
import os
import signal
import sys
from itertools import count
from pathlib import Path

from airflow_pipelines.datastream import Configuration, ExternalizedCheckpointCleanup, KeyedProcessFunction
from airflow_pipelines.datastream import StreamExecutionEnvironment
from airflow_pipelines.datastream.common import Encoder, WatermarkStrategy
from airflow_pipelines.datastream.connectors import BucketAssigner, FileSink, FileSource, StreamFormat
from airflow_pipelines.datastream.state import ValueStateDescriptor


class Number(KeyedProcessFunction):
    def open(self, runtime_context):
        self.count = runtime_context.get_state(ValueStateDescriptor("count"))

    def process_element(self, value, ctx):
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        yield f"{ctx.get_current_key()} {count} {value}"


folder, killed_at, renames = Path(sys.argv[1]), int(sys.argv[2]), count(1)


def die_at_a_rename(event, arguments):
    # Checkpoints and files become what they are by a rename: the program dies right before one of them.
    if event == "os.rename" and next(renames) == killed_at:
        os.kill(os.getpid(), signal.SIGKILL)


sys.addaudithook(die_at_a_rename)
settings = Configuration()
kept = sorted(folder.glob("checkpoints/*/chk-*"), key=lambda path: path.stat().st_mtime_ns)
if kept:
    settings.set_string("execution.savepoint.path", str(kept[-1]))
env = StreamExecutionEnvironment.get_execution_environment(settings).set_parallelism(2).enable_checkpointing(int(sys.argv[3]))
config = env.get_checkpoint_config().set_checkpoint_storage_dir(str(folder / "checkpoints"))
config.set_externalized_checkpoint_cleanup(ExternalizedCheckpointCleanup.RETAIN_ON_CANCELLATION)
source = FileSource.for_record_stream_format(StreamFormat.text_line_format(), str(folder / "in")).build()
lines = env.from_source(source, WatermarkStrategy.no_watermarks(), "lines").uid("lines")
counted = lines.key_by(lambda line: int(line.split()[1]) % KEYS).process(Number()).uid("number")
sink = FileSink.for_row_format(str(folder / "out"), Encoder.simple_string_encoder())
counted.sink_to(sink.with_bucket_assigner(BucketAssigner.base_path_bucket_assigner()).build()).uid("out")
env.execute()
""".replace("KEYS", str(KEYS))


@pytest.mark.core("while it runs")
@pytest.mark.processes
@pytest.mark.parametrize(
    ("interval", "kills", "at_least"),
    [(10, (1, 2, 3, 4, 5, 6, 8, 10, 0), 3), (60_000, (2, 3, 0), 1)],
    ids=["while it runs", "at its end"],
)
def test_files_in_and_out_are_exactly_once_wherever_the_program_is_killed(
    tmp_path: Path, interval: int, kills: tuple[int, ...], at_least: int
) -> None:
    (tmp_path / "in").mkdir()
    expected = set()
    for file in range(FILES):
        lines = [f"{file} {number}" for number in range(LINES)]
        expected.update(lines)
        (tmp_path / "in" / f"{file}.txt").write_text("".join(f"{line}\n" for line in lines))
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    codes = []
    for killed_at in kills:
        codes.append(_run(program, str(tmp_path), str(killed_at), str(interval)))
        if codes[-1] == 0:
            break
    assert codes[-1] == 0
    assert codes[:-1] == [-signal.SIGKILL] * len(codes[:-1])
    assert len(codes) > at_least
    written = [line.split(" ", 2) for path in (tmp_path / "out").glob("part-*") for line in path.read_text().splitlines()]
    assert len(written) == len(expected)
    assert {line for _, _, line in written} == expected
    counts = sorted((int(key), int(count)) for key, count, _ in written)
    assert counts == [(key, count) for key in range(KEYS) for count in range(1, FILES * LINES // KEYS + 1)]


def _run(program: Path, *arguments: str) -> int:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, str(program), *arguments]
    finished = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert "Traceback" not in finished.stderr, finished.stderr
    return finished.returncode
