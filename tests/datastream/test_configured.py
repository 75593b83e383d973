"""Settings that come with a configuration do what the methods for them do."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from airflow_pipelines.datastream import RuntimeExecutionMode
from airflow_pipelines.datastream.checkpoint_config import ExternalizedCheckpointCleanup
from airflow_pipelines.datastream.checkpointing_mode import CheckpointingMode
from airflow_pipelines.datastream.common.configuration import Configuration
from airflow_pipelines.datastream.environment import StreamExecutionEnvironment
from airflow_pipelines.streams.errors import StreamProgramError
from tests.datastream.programs import environment


def configured(**settings: Any) -> StreamExecutionEnvironment:
    """An environment of settings, whose names have two underscores in place of dots and one in place of hyphens."""
    named = {key.replace("__", ".").replace("_", "-"): value for key, value in settings.items()}
    return StreamExecutionEnvironment.get_execution_environment(Configuration(named))


def test_the_mode_of_a_configuration_gives_the_results_of_that_mode() -> None:
    for mode, results in (("BATCH", [("a", 3)]), ("streaming", [("a", 1), ("a", 3)]), ("AUTOMATIC", [("a", 3)])):
        env = configured(execution__runtime_mode=mode)
        stream = env.from_collection([("a", 1), ("a", 2)]).key_by(lambda value: value[0])
        assert list(stream.reduce(lambda one, other: (one[0], one[1] + other[1])).execute_and_collect()) == results


def test_settings_do_what_their_methods_do() -> None:
    env = configured(
        execution__runtime_mode="AUTOMATIC",
        parallelism__default=3,
        pipeline__max_parallelism="64",
        pipeline__object_reuse="true",
        pipeline__operator_chaining__enabled=False,
        pipeline__auto_watermark_interval="1 s",
        pipeline__global_job_parameters="a:1, b:x",
        execution__checkpointing__interval="2 min",
        execution__checkpointing__mode="at_least_once",
        execution__checkpointing__min_pause="500",
        execution__checkpointing__timeout="1h",
        execution__checkpointing__externalized_checkpoint_retention="RETAIN_ON_CANCELLATION",
        state__checkpoints__dir="file:///tmp/checkpoints",
        state__savepoints__dir="file:///tmp/savepoints",
    )
    config, checkpoints = env.get_config(), env.get_checkpoint_config()
    assert env._runtime_mode is RuntimeExecutionMode.AUTOMATIC
    assert (env.get_parallelism(), env.get_max_parallelism(), env.is_chaining_enabled()) == (3, 64, False)
    assert (config.is_object_reuse_enabled(), config.get_auto_watermark_interval()) == (True, 1_000)
    assert config.get_global_job_parameters() == {"a": "1", "b": "x"}
    assert (checkpoints.get_checkpoint_interval(), checkpoints.get_checkpoint_timeout()) == (120_000, 3_600_000)
    assert checkpoints.get_min_pause_between_checkpoints() == 500
    assert checkpoints.get_checkpointing_mode() is CheckpointingMode.AT_LEAST_ONCE
    assert checkpoints.get_externalized_checkpoint_cleanup() is ExternalizedCheckpointCleanup.RETAIN_ON_CANCELLATION
    assert env.get_default_savepoint_directory() == "file:///tmp/savepoints"
    env.set_parallelism(2)
    assert env.get_parallelism() == 2


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"restart_strategy": "none"}, ""),
        ({"restart_strategy": "fixed-delay", "restart_strategy__fixed_delay__attempts": "7"}, "7"),
        ({"restart_strategy__type": "failure-rate", "restart_strategy__failure_rate__max_failures_per_interval": 6}, "6"),
    ],
)
def test_restart_strategies(settings: dict[str, str], says: str) -> None:
    strategy = configured(**settings).get_restart_strategy()
    assert type(strategy) is not type(environment().get_restart_strategy())
    assert says in strategy.get_description()


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"execution__runtime_mode": "BOTH"}, "The setting execution.runtime-mode is 'BOTH'; it takes STREAMING, BATCH, AUTOMATIC"),
        ({"parallelism__default": "many"}, "The setting parallelism.default is 'many'"),
        ({"parallelism__default": 0}, "The setting parallelism.default is '0'"),
        ({"execution__checkpointing__interval": "often"}, "it takes a length of time such as '10 s'"),
        ({"pipeline__global_job_parameters": "a"}, "it takes names and values"),
        ({"restart_strategy": "sometimes"}, "it takes none, fixed-delay or failure-rate"),
    ],
)
def test_a_setting_without_a_value_that_is_taken_is_refused(settings: dict[str, Any], says: str) -> None:
    with pytest.raises(StreamProgramError, match=says):
        configured(**settings)


def test_settings_without_effect_are_said(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, logger="airflow_pipelines.datastream"):
        configured(taskmanager__memory__size="1g", parallelism__default=1)
    assert "Settings without effect here: taskmanager.memory.size." in caplog.text
    assert "parallelism.default" not in caplog.text


@pytest.mark.parametrize("name", ["exponential-delay", "exponentialdelay"])
def test_restarts_that_wait_longer_each_time_are_without_effect(name: str, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, logger="airflow_pipelines.datastream"):
        env = configured(restart_strategy__type=name, restart_strategy__exponential_delay__initial_backoff="10 s")
    assert type(env.get_restart_strategy()) is type(environment().get_restart_strategy())
    (message,) = caplog.messages
    named = "restart-strategy.exponential-delay.initial-backoff, restart-strategy.type"
    assert f"Settings without effect here: {named}." in message


@pytest.mark.parametrize("parallelism", [1, 2, 3])
def test_a_limit_takes_the_first_elements(parallelism: int) -> None:
    assert environment(parallelism).from_collection(range(10)).execute_and_collect(limit=3) == [0, 1, 2]
    assert list(environment(parallelism).from_collection(range(10)).execute_and_collect()) == list(range(10))
    doubled = environment(parallelism).from_collection(range(10)).map(lambda value: value * 2)
    assert len(doubled.execute_and_collect(limit=3)) == 3
    assert environment(parallelism).from_collection(range(2)).execute_and_collect(limit=3) == [0, 1]
