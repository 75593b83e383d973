"""The stream program of ``tools.chaos.streams``: it numbers the lines of each key in files of a folder, each distinct line once.

A third of the lines wait for a timer of their key. The output goes to files, to a relation of all lines, and to one of counts.
"""

import os
import signal
import sys
from itertools import count
from pathlib import Path

from airflow_pipelines.datastream import Duration, StreamExecutionEnvironment, WatermarkStrategy
from airflow_pipelines.datastream.common import Encoder
from airflow_pipelines.datastream.connectors import BucketAssigner, FileSink, FileSource, StreamFormat
from airflow_pipelines.datastream.functions import KeyedProcessFunction
from airflow_pipelines.datastream.state import ListStateDescriptor, MapStateDescriptor, ValueStateDescriptor

FOLDER = Path(sys.argv[1])
WAIT_MS = 300
DIE = FOLDER / "die"
"""A file with the number of the rename before which the process of the program is killed; a rename publishes a written file."""


class Number(KeyedProcessFunction):
    """A function that numbers the lines of a key."""

    def open(self, runtime_context):
        """Create the empty state."""
        self.seen = runtime_context.get_map_state(MapStateDescriptor("seen"))
        self.waiting = runtime_context.get_list_state(ListStateDescriptor("waiting"))
        self.count = runtime_context.get_state(ValueStateDescriptor("count"))
        sys.addaudithook(killer())

    def process_element(self, line, ctx):
        """Assign a number to a line that is new, or let it wait."""
        number = int(line.split()[1])
        if self.seen.contains(number):
            return
        self.seen.put(number, True)
        if number % 3:
            yield self._numbered(line)
            return
        self.waiting.add(line)
        timers = ctx.timer_service()
        timers.register_processing_time_timer(timers.current_processing_time() + WAIT_MS)

    def on_timer(self, _timestamp, _ctx):
        """Assign numbers to the waiting lines."""
        waiting = list(self.waiting.get())
        self.waiting.clear()
        for line in waiting:
            yield self._numbered(line)

    def _numbered(self, line):
        number = (self.count.value() or 0) + 1
        self.count.update(number)
        return int(line.split()[0]), number, line


def killer():
    """Return an audit hook that ends the process before the rename that :data:`DIE` names."""
    renames = count(1)

    def hook(event, _):
        if event == "os.rename" and DIE.exists() and next(renames) >= int(DIE.read_text()):
            DIE.unlink()
            os.kill(os.getpid(), signal.SIGKILL)

    return hook


env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(2)
source = FileSource.for_record_stream_format(StreamFormat.text_line_format(), str(FOLDER / "in"))
source = source.monitor_continuously(Duration.of_millis(50)).build()
lines = env.from_source(source, WatermarkStrategy.no_watermarks(), "lines").uid("lines")
numbered = lines.key_by(lambda line: int(line.split()[0])).process(Number()).name("Number").uid("number")
sink = FileSink.for_row_format(str(FOLDER / "out"), Encoder.simple_string_encoder())
sink = sink.with_bucket_assigner(BucketAssigner.base_path_bucket_assigner()).build()
numbered.map(lambda found: f"{found[1]} {found[2]}").sink_to(sink).uid("out")
numbered.to_relation("numbered", {"key": "INT", "n": "BIGINT", "line": "STRING"}).uid("numbered")
numbered.map(lambda found: found[:2]).to_relation("counts", {"key": "INT", "n": "BIGINT"}, primary_key=["key"]).uid("counts")
env.execute("numbered lines")
