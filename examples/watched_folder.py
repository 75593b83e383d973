"""Watches a folder and writes what it reads to files, each line exactly once: also the one at which the program fails."""

import tempfile
import time
from pathlib import Path

from airflow_pipelines.datastream import Duration, StreamExecutionEnvironment, WatermarkStrategy
from airflow_pipelines.datastream.common import Encoder, RestartStrategies
from airflow_pipelines.datastream.connectors import BucketAssigner, FileSink, FileSource, StreamFormat
from airflow_pipelines.datastream.functions import MapFunction

FILES = {"monday.txt": "apples 3\npears 5\n", "tuesday.txt": "plums 2\napples 4\n"}
SECONDS = 30


class Price(MapFunction):
    """Fails once, in the middle of the second file, and is started again."""

    def open(self, runtime_context):
        self.attempt = runtime_context.get_attempt_number()

    def map(self, value):
        fruit, number = value.split()
        if fruit == "plums" and self.attempt == 0:
            raise ConnectionError("the list of prices cannot be reached")
        return f"{fruit}: {int(number) * 2} euros"


def lines_of(folder):
    """What readers of the folder see: files that are not complete have names with a point."""
    return [line for file in folder.rglob("[!.]*") if file.is_file() for line in file.read_text().splitlines()]


def wait_for(number, folder):
    """Wait until so many lines are there."""
    deadline = time.monotonic() + SECONDS
    while len(lines_of(folder)) < number:
        if time.monotonic() > deadline:
            raise TimeoutError(f"{folder} has no {number} lines after {SECONDS} s")
        time.sleep(0.05)


with tempfile.TemporaryDirectory() as temporary:
    incoming, prices = Path(temporary, "incoming"), Path(temporary, "prices")
    incoming.mkdir()

    env = StreamExecutionEnvironment.get_execution_environment()
    env.enable_checkpointing(50)
    env.set_restart_strategy(RestartStrategies.fixed_delay_restart(3, 100))
    lines = StreamFormat.text_line_format()
    source = FileSource.for_record_stream_format(lines, str(incoming)).monitor_continuously(Duration.of_millis(50)).build()
    sink = FileSink.for_row_format(str(prices), Encoder.simple_string_encoder())
    sink = sink.with_bucket_assigner(BucketAssigner.base_path_bucket_assigner()).build()
    env.from_source(source, WatermarkStrategy.no_watermarks(), "incoming").map(Price()).sink_to(sink)
    job = env.execute_async("prices")

    for written, (name, text) in enumerate(FILES.items(), 1):
        # A file is read once, as it is when it appears: so it appears when it is complete.
        (incoming / f".{name}").write_text(text)
        (incoming / f".{name}").rename(incoming / name)
        wait_for(2 * written, prices)
    job.cancel().result(SECONDS)

    env = StreamExecutionEnvironment.get_execution_environment()
    env.from_collection(sorted(lines_of(prices))).print("price")
    env.execute("what was written")
