from __future__ import annotations

import pickle
from typing import Any

import pytest

from airflow_pipelines.datastream.common.time import Duration
from airflow_pipelines.datastream.common.watermark_strategy import TimestampAssigner, WatermarkStrategy
from airflow_pipelines.streams.elements import MIN_TIMESTAMP
from airflow_pipelines.streams.watermarks import BoundedOutOfOrderness, NoWatermarks, WatermarkGenerator, WatermarkOutput


class _Second(TimestampAssigner):
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return int(value[1]) if record_timestamp < 0 else record_timestamp


class _Each(WatermarkGenerator):
    def on_event(self, event: Any, event_timestamp: int, output: WatermarkOutput) -> None:
        output.emit_watermark(event_timestamp)

    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        pass


def test_each_method_keeps_what_was_set_before() -> None:
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(5)).with_timestamp_assigner(_Second())
    strategy = strategy.with_idleness(Duration.of_seconds(2)).with_watermark_alignment("g", Duration.of_seconds(1))
    strategy = pickle.loads(pickle.dumps(strategy))
    assert strategy.assigner is not None
    assert (strategy.assigner(("a", 7), MIN_TIMESTAMP), strategy.assigner(("a", 7), 3)) == (7, 3)
    assert strategy.idle_after == 2000
    generator = strategy.generator()
    assert isinstance(generator, BoundedOutOfOrderness)
    assert generator.delay == 5000


def test_kinds_of_generators() -> None:
    monotonous = WatermarkStrategy.for_monotonous_timestamps().generator()
    assert isinstance(monotonous, BoundedOutOfOrderness)
    assert monotonous.delay == 0
    assert isinstance(WatermarkStrategy.no_watermarks().generator(), NoWatermarks)
    assert isinstance(WatermarkStrategy.for_generator(_Each).generator(), _Each)


def test_refuses_what_makes_no_sense() -> None:
    with pytest.raises(TypeError, match=r"use Duration.of_seconds\(...\)"):
        WatermarkStrategy.for_bounded_out_of_orderness(5)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="max_out_of_orderness in ms must be at least 0, not -1"):
        WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(-1))
    with pytest.raises(ValueError, match="idle_timeout in ms must be at least 1"):
        WatermarkStrategy.no_watermarks().with_idleness(Duration.of_millis(0))
    with pytest.raises(TypeError, match=r"write _Second\(\) instead of the class"):
        WatermarkStrategy.no_watermarks().with_timestamp_assigner(_Second)
    with pytest.raises(TypeError, match="each split has its own"):
        WatermarkStrategy.for_generator(_Each())  # type: ignore[arg-type]
