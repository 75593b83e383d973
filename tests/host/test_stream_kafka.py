"""A deployed stream program from topic to topic: each result once over kills, and partitions that are found while it runs."""

from __future__ import annotations

from airflow_pipelines.program.sources import SourceFile
from tests.fixtures.kafka import Kafka
from tests.host.driver import Make, Pipeline

_PROGRAM = """
from airflow_pipelines.datastream import KeyedProcessFunction, StreamExecutionEnvironment, Time, WatermarkStrategy
from airflow_pipelines.datastream.common import SimpleStringSchema
from airflow_pipelines.datastream.connectors import DeliveryGuarantee, KafkaRecordSerializationSchema, KafkaSink, KafkaSource
from airflow_pipelines.datastream.state import ValueStateDescriptor
from airflow_pipelines.datastream.window import TumblingEventTimeWindows


class Number(KeyedProcessFunction):
    def open(self, runtime_context):
        self.count = runtime_context.get_state(ValueStateDescriptor("count"))

    def process_element(self, value, ctx):
        self.count.update((self.count.value() or 0) + 1)
        yield f"{ctx.get_current_key()} {self.count.value()} {value}"


def writes(name):
    serializer = KafkaRecordSerializationSchema.builder().set_topic("TARGET").set_value_serialization_schema(SimpleStringSchema())
    sink = KafkaSink.builder().set_bootstrap_servers("${env:KAFKA}").set_record_serializer(serializer.build())
    return sink.set_delivery_guarantee(DeliveryGuarantee.EXACTLY_ONCE).set_transactional_id_prefix("TARGET-" + name).build()


source = KafkaSource.builder().set_bootstrap_servers("${env:KAFKA}").set_topics("SOURCE").set_group_id("SOURCE")
source.set_value_only_deserializer(SimpleStringSchema()).set_property("partition.discovery.interval.ms", "100")
env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(2)
values = env.from_source(source.build(), WatermarkStrategy.for_monotonous_timestamps(), "topic").uid("topic")
values.key_by(lambda value: value[0]).process(Number()).uid("number").sink_to(writes("numbers")).uid("numbers")
windows = values.window_all(TumblingEventTimeWindows.of(Time.seconds(1))).reduce(lambda a, b: a + b).uid("windows")
windows.map(lambda text: "window of " + str(len(text))).sink_to(writes("windows")).uid("out")
env.execute()
"""


LAG = {"records": 0, "bytes": None, "seconds": None}


def _program(pipeline: Pipeline, source: str, target: str) -> Pipeline:
    text = _PROGRAM.replace("SOURCE", source).replace("TARGET", target)
    pipeline.stream_files = (SourceFile("program.py", text),)
    return pipeline


def _values(kafka: Kafka, target: str) -> list[str]:
    return sorted((record.value or b"").decode() for record in kafka.read(target))


def test_each_result_is_in_the_topic_once_over_kills_and_new_partitions_are_read(make: Make, kafka: Kafka) -> None:
    source, target = kafka.topic(2), kafka.topic(2)
    for partition in range(2):
        kafka.send(source, *(f"{key}{partition}" for key in "abc"), partition=partition, timestamp=1_000)
    fault_tolerance = {"model": "at_least_once", "checkpoint_interval_secs": 1}
    pipeline = _program(make("", env={"KAFKA": kafka.address}, fault_tolerance=fault_tolerance), source, target)
    pipeline.start()
    kafka.until(lambda: len(_values(kafka, target)) == 6)
    kafka.until(lambda: kafka.committed(source, source) == {0: 3, 1: 3})
    kafka.send(source, "d0", timestamp=2_500)
    pipeline.kill()
    kafka.grow(source, 3)
    kafka.send(source, "a2", "d2", partition=2, timestamp=2_500)
    pipeline.start()
    kafka.until(lambda: len(_values(kafka, target)) == 9)
    # The partition that nothing has come of holds event time back, however far the others are.
    kafka.send(source, "d0", timestamp=9_000)
    kafka.send(source, "d2", partition=2, timestamp=9_000)
    kafka.until(lambda: len(_values(kafka, target)) == 11)
    pipeline.kill()
    kafka.send(source, "e1", partition=1, timestamp=3_000)
    pipeline.start()
    kafka.until(lambda: len(_values(kafka, target)) == 14)
    numbered = [value.split() for value in _values(kafka, target) if not value.startswith("window")]
    assert [value for value in _values(kafka, target) if value.startswith("window")] == ["window of 12", "window of 6"]
    assert sorted(value for _, _, value in numbered) == sorted(
        ["a0", "a1", "a2", "b0", "b1", "c0", "c1", "d0", "d0", "d2", "d2", "e1"]
    )
    assert sorted((key, number) for key, number, _ in numbered) == [
        (key, str(number)) for key, count in zip("abcde", (3, 2, 2, 4, 1), strict=True) for number in range(1, count + 1)
    ]
    kafka.until(lambda: sum(kafka.committed(source, source).values()) == 12)
    # All partitions say how much they have that was not read.
    kafka.until(lambda: [each["metrics"]["lag"] for each in pipeline.stats()["inputs"]] == [LAG])
