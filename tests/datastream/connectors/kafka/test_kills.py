"""A program from topic to topic that is killed again and again: who reads committed records sees each result once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fixtures.kafka import Kafka

ROOT = Path(__file__).parents[4]
PARTITIONS, RECORDS, KEYS = 3, 1_500, 50
DEATHS = (("rename", 1), ("rename", 3), ("transaction", 1), ("committed", 2), ("transaction", 4), ("committed", 5), ("", 0))
"""Before so many renames, transactions or ends of one; the last run is not killed."""

PROGRAM = """
import os
import signal
import sys
import time
from itertools import count
from pathlib import Path

from airflow_pipelines.datastream import Configuration, ExternalizedCheckpointCleanup, KeyedProcessFunction
from airflow_pipelines.datastream import StreamExecutionEnvironment, WatermarkStrategy
from airflow_pipelines.datastream.common import SimpleStringSchema
from airflow_pipelines.datastream.connectors import DeliveryGuarantee, KafkaOffsetsInitializer, KafkaRecordSerializationSchema
from airflow_pipelines.datastream.connectors import KafkaSink, KafkaSource
from airflow_pipelines.datastream.connectors.kafka import transactions
from airflow_pipelines.datastream.state import ValueStateDescriptor
from airflow_pipelines.streams.local import LocalRunner


class Number(KeyedProcessFunction):
    def open(self, runtime_context):
        self.count = runtime_context.get_state(ValueStateDescriptor("count"))

    def process_element(self, value, ctx):
        # There are to be records left when the run comes to where it dies.
        time.sleep(0.001)
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        yield f"{ctx.get_current_key()} {count} {value}"


servers, source_topic, target, folder, point, at = sys.argv[1:]
seen = count(1)


def die_at(reached):
    if reached == point and next(seen) == int(at):
        os.kill(os.getpid(), signal.SIGKILL)


# Checkpoints become what they are by a rename.
sys.addaudithook(lambda event, _: die_at("rename") if event == "os.rename" else None)
write = transactions.Transactions.write


def dying_write(self, prepared):
    die_at("transaction")
    write(self, prepared)
    die_at("committed")


transactions.Transactions.write = dying_write
LocalRunner.step.__defaults__ = (None, 5)
settings = Configuration()
kept = sorted(Path(folder).glob("*/chk-*"), key=lambda path: path.stat().st_mtime_ns)
if kept:
    settings.set_string("execution.savepoint.path", str(kept[-1]))
env = StreamExecutionEnvironment.get_execution_environment(settings).set_parallelism(2).enable_checkpointing(10)
config = env.get_checkpoint_config().set_checkpoint_storage_dir(folder)
config.set_externalized_checkpoint_cleanup(ExternalizedCheckpointCleanup.RETAIN_ON_CANCELLATION)
source = KafkaSource.builder().set_bootstrap_servers(servers).set_topics(source_topic).set_group_id(source_topic)
source = source.set_value_only_deserializer(SimpleStringSchema()).set_bounded(KafkaOffsetsInitializer.latest()).build()
values = env.from_source(source, WatermarkStrategy.no_watermarks(), "topic").uid("topic")
counted = values.key_by(lambda value: int(value.split()[1]) % KEYS).process(Number()).uid("number")
serializer = KafkaRecordSerializationSchema.builder().set_topic(target)
sink = KafkaSink.builder().set_bootstrap_servers(servers).set_transactional_id_prefix(target)
sink = sink.set_record_serializer(serializer.set_value_serialization_schema(SimpleStringSchema()).build())
counted.sink_to(sink.set_delivery_guarantee(DeliveryGuarantee.EXACTLY_ONCE).build()).uid("target")
env.execute()
""".replace("KEYS", str(KEYS))


@pytest.mark.processes
def test_each_result_is_written_once_wherever_the_program_is_killed(kafka: Kafka, tmp_path: Path) -> None:
    source, target = kafka.topic(PARTITIONS), kafka.topic(2)
    expected = set()
    for partition in range(PARTITIONS):
        values = [f"{partition} {number}" for number in range(RECORDS)]
        expected.update(values)
        kafka.send(source, *values, partition=partition)
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    killed = 0
    for point, at in DEATHS:
        arguments = [kafka.address, source, target, str(tmp_path / "checkpoints"), point, str(at)]
        killed += _run(program, *arguments) == -signal.SIGKILL
    assert killed == len(DEATHS) - 1, "a run ended before it came to where it was to die"
    written = [(record.value or b"").decode().split(" ", 2) for record in kafka.read(target)]
    assert len(written) == len(expected)
    assert {value for _, _, value in written} == expected
    counts = sorted((int(key), int(count)) for key, count, _ in written)
    assert counts == [(key, count) for key in range(KEYS) for count in range(1, PARTITIONS * RECORDS // KEYS + 1)]
    assert kafka.committed(source, source) == dict.fromkeys(range(PARTITIONS), RECORDS)


def _run(program: Path, *arguments: str) -> int:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, str(program), *arguments]
    finished = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert "Traceback" not in finished.stderr, finished.stderr
    return finished.returncode
