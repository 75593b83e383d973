"""Programs as PyFlink's documentation of its classes shows them run as they are, but for the names of modules."""

from __future__ import annotations

import logging
import zipfile
from pathlib import Path

import pytest

from airflow_pipelines.datastream import (
    CheckpointingMode,
    CoFlatMapFunction,
    CoMapFunction,
    EmbeddedRocksDBStateBackend,
    ExternalizedCheckpointCleanup,
    FilterFunction,
    FlatMapFunction,
    MapFunction,
    PredefinedOptions,
    ReduceFunction,
    RuntimeExecutionMode,
    StreamExecutionEnvironment,
    TimeCharacteristic,
)
from airflow_pipelines.datastream.common import RestartStrategies, no_effect


class MyMapFunction(MapFunction):
    def map(self, value):
        return value + 1


class MyFilterFunction(FilterFunction):
    def filter(self, value):
        return value > 1


class MyFlatMapFunction(FlatMapFunction):
    def flat_map(self, value):
        yield from range(value)


class MyReduceFunction(ReduceFunction):
    def reduce(self, value1, value2):
        return value1[0] + value2[0], value2[1]


class MyCoMapFunction(CoMapFunction):
    def map1(self, value):
        return value

    def map2(self, value):
        return str(value)


class MyCoFlatMapFunction(CoFlatMapFunction):
    def flat_map1(self, value):
        yield from range(value)

    def flat_map2(self, value):
        for i in range(value):
            yield -i


@pytest.fixture
def env():
    return StreamExecutionEnvironment.get_execution_environment()


def test_functions_transform_a_stream(env):
    ds = env.from_collection([1, 2, 3])
    assert list(ds.map(MyMapFunction()).execute_and_collect()) == [2, 3, 4]
    assert list(ds.filter(MyFilterFunction()).execute_and_collect()) == [2, 3]
    assert list(ds.flat_map(MyFlatMapFunction()).execute_and_collect()) == [0, 0, 1, 0, 1, 2]


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        (RuntimeExecutionMode.STREAMING, [(1, "a"), (3, "a"), (6, "a"), (4, "b")]),
        (RuntimeExecutionMode.BATCH, [(6, "a"), (4, "b")]),
    ],
)
def test_elements_of_a_key_are_reduced(env, mode, expected):
    env.set_runtime_mode(mode)
    ds = env.from_collection([(1, "a"), (2, "a"), (3, "a"), (4, "b")])
    assert list(ds.key_by(lambda x: x[1]).reduce(lambda a, b: (a[0] + b[0], b[1])).execute_and_collect()) == expected
    assert list(ds.key_by(lambda x: x[1]).reduce(MyReduceFunction()).execute_and_collect()) == expected


def test_one_function_transforms_two_streams(env):
    ds1, ds2 = env.from_collection([1, 2]), env.from_collection([3])
    assert sorted(ds1.connect(ds2).map(MyCoMapFunction()).execute_and_collect(), key=str) == [1, 2, "3"]
    assert sorted(ds1.connect(ds2).flat_map(MyCoFlatMapFunction()).execute_and_collect()) == [-2, -1, 0, 0, 0, 1]


def test_settings_are_kept_and_a_program_with_all_of_them_runs(env, tmp_path, capsys):
    state_backend = EmbeddedRocksDBStateBackend()
    state_backend.set_predefined_options(PredefinedOptions.SPINNING_DISK_OPTIMIZED)
    assert state_backend.get_predefined_options() is PredefinedOptions.SPINNING_DISK_OPTIMIZED
    env.add_default_kryo_serializer("com.aaa.bbb.TypeClass", "com.aaa.bbb.Serializer")
    env.register_type("com.aaa.bbb.TypeClass")
    env.register_type_with_kryo_serializer("com.aaa.bbb.TypeClass", "com.aaa.bbb.Serializer")
    env.enable_checkpointing(300000, CheckpointingMode.AT_LEAST_ONCE)
    env.set_default_savepoint_directory("hdfs://savepoints")
    env.set_restart_strategy(RestartStrategies.no_restart())
    env.set_state_backend(state_backend)
    env.set_stream_time_characteristic(TimeCharacteristic.EventTime)
    config = env.get_checkpoint_config()
    config.set_checkpointing_mode(CheckpointingMode.AT_LEAST_ONCE)
    config.enable_externalized_checkpoints(ExternalizedCheckpointCleanup.RETAIN_ON_CANCELLATION)
    config.set_externalized_checkpoint_cleanup(ExternalizedCheckpointCleanup.RETAIN_ON_CANCELLATION)
    config.set_fail_on_checkpointing_errors(False)
    config.set_tolerable_checkpoint_failure_number(2)
    assert env.get_checkpoint_interval() == 300000
    assert env.get_checkpointing_mode() is CheckpointingMode.AT_LEAST_ONCE
    assert env.get_default_savepoint_directory() == "hdfs://savepoints"
    assert env.get_state_backend() is state_backend
    assert config.is_externalized_checkpoints_enabled()
    assert config.get_tolerable_checkpoint_failure_number() == 2
    env.from_collection([1]).map(MyMapFunction()).print()
    env.execute()
    assert capsys.readouterr().out == "2\n"


def test_functions_read_files_of_an_archive(env, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    archive = tmp_path / "py_env.zip"
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("py_env/data/data.txt", "what the function reads")
    env.add_python_archive(str(archive), "myenv")

    def my_udf(_):
        return Path("myenv/py_env/data/data.txt").read_text()

    assert list(env.from_collection([1]).map(my_udf).execute_and_collect()) == ["what the function reads"]


def test_a_setting_without_effect_says_so_once(env, caplog):
    no_effect._say_once.cache_clear()
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            env.register_type("com.aaa.bbb.TypeClass")
            env.set_state_backend(EmbeddedRocksDBStateBackend())
    assert [record.getMessage().split(" has no effect")[0] for record in caplog.records] == [
        "StreamExecutionEnvironment.register_type",
        "StreamExecutionEnvironment.set_state_backend",
    ]
