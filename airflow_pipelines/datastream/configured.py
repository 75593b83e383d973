"""Application of a configuration to an environment.

Each setting has the effect of the method for it. A warning lists the settings without effect.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any, Final, TypeAlias, TypeVar

from airflow_pipelines.datastream.checkpoint_config import ExternalizedCheckpointCleanup
from airflow_pipelines.datastream.checkpointing_mode import CheckpointingMode
from airflow_pipelines.datastream.common.configuration import Configuration
from airflow_pipelines.datastream.common.restart_strategy import RestartStrategies, RestartStrategyConfiguration
from airflow_pipelines.datastream.environment_settings import EnvironmentSettings
from airflow_pipelines.datastream.execution_mode import RuntimeExecutionMode
from airflow_pipelines.streams.errors import StreamProgramError

_log = logging.getLogger("airflow_pipelines.datastream")
_LENGTH: Final = re.compile(r"\s*([0-9]+)\s*([a-zA-Zµ]*)\s*")
_UNITS: Final[Mapping[str, float]] = {
    **dict.fromkeys(("", "ms", "milli", "millis", "millisecond", "milliseconds"), 1),
    **dict.fromkeys(("ns", "nano", "nanos", "nanosecond", "nanoseconds"), 1e-6),
    **dict.fromkeys(("us", "µs", "micro", "micros", "microsecond", "microseconds"), 1e-3),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1_000),
    **dict.fromkeys(("m", "min", "minute", "minutes"), 60_000),
    **dict.fromkeys(("h", "hour", "hours"), 3_600_000),
    **dict.fromkeys(("d", "day", "days"), 86_400_000),
}
"""The units of durations, in milliseconds."""
_RESTART: Final = "restart-strategy"
_EXPONENTIAL: Final = "exponential-delay"
_OTHER_NAMES: Final = {
    "off": "none",
    "disable": "none",
    "fixeddelay": "fixed-delay",
    "failurerate": "failure-rate",
    "exponentialdelay": _EXPONENTIAL,
}

_Apply: TypeAlias = Callable[[EnvironmentSettings, "_Setting"], Any]
_Member = TypeVar("_Member", bound=Enum)


class _Setting:
    """A setting with its value as each type that it can have."""

    def __init__(self, configuration: Configuration, key: str) -> None:
        self._configuration = configuration
        self.key = key

    @property
    def text(self) -> str:
        return (self._configuration.get_string(self.key) or "").strip()

    @property
    def number(self) -> int:
        return self._configuration.get_integer(self.key, 0)

    @property
    def is_on(self) -> bool:
        return self._configuration.get_boolean(self.key, False)

    @property
    def milliseconds(self) -> int:
        match = _LENGTH.fullmatch(self.text)
        unit = None if match is None else _UNITS.get(match[2].lower())
        if match is None or unit is None:
            raise self.wrong("a length of time such as '10 s'")
        return int(int(match[1]) * unit)

    @property
    def list(self) -> list[str]:
        return [part.strip() for part in re.split(r"[;,]", self.text) if part.strip()]

    @property
    def map(self) -> dict[str, str]:
        pairs = [part.partition(":") for part in self.text.split(",") if part.strip()]
        if not all(mark for _, mark, _ in pairs):
            raise self.wrong("names and values such as 'a:1,b:2'")
        return {name.strip(): value.strip() for name, _, value in pairs}

    def member(self, kind: type[_Member]) -> _Member:
        """Return the member of an enumeration that the setting names."""
        name = self.text.upper().replace("-", "_")
        if name not in kind.__members__:
            raise self.wrong(", ".join(kind.__members__))
        return kind[name]

    def wrong(self, wanted: str) -> StreamProgramError:
        """Return the error for a setting with an invalid value."""
        return StreamProgramError(f"The setting {self.key} is {self.text!r}; it takes {wanted}.")


def _files(environment: EnvironmentSettings, setting: _Setting) -> None:
    for path in setting.list:
        environment.add_python_file(path)


def _archives(environment: EnvironmentSettings, setting: _Setting) -> None:
    for path in setting.list:
        archive, _, folder = path.partition("#")
        environment.add_python_archive(archive, folder or None)


def _requirements(environment: EnvironmentSettings, setting: _Setting) -> None:
    file, _, folder = setting.text.partition("#")
    environment.set_python_requirements(file, folder or None)


def _chaining(environment: EnvironmentSettings, setting: _Setting) -> None:
    if not setting.is_on:
        environment.disable_operator_chaining()


def _object_reuse(environment: EnvironmentSettings, setting: _Setting) -> None:
    config = environment.get_config()
    (config.enable_object_reuse if setting.is_on else config.disable_object_reuse)()


_APPLIED: Final[Mapping[str, _Apply]] = {
    "execution.runtime-mode": lambda env, setting: env.set_runtime_mode(setting.member(RuntimeExecutionMode)),
    "parallelism.default": lambda env, setting: env.set_parallelism(setting.number),
    "pipeline.max-parallelism": lambda env, setting: env.set_max_parallelism(setting.number),
    "pipeline.object-reuse": _object_reuse,
    "pipeline.operator-chaining": _chaining,
    "pipeline.operator-chaining.enabled": _chaining,
    "pipeline.auto-watermark-interval": lambda env, setting: env.get_config().set_auto_watermark_interval(setting.milliseconds),
    "pipeline.global-job-parameters": lambda env, setting: env.get_config().set_global_job_parameters(setting.map),
    "execution.checkpointing.interval": lambda env, setting: env.enable_checkpointing(setting.milliseconds),
    "execution.checkpointing.mode": lambda env, setting: env.get_checkpoint_config().set_checkpointing_mode(
        setting.member(CheckpointingMode)
    ),
    "execution.checkpointing.min-pause": lambda env, setting: env.get_checkpoint_config().set_min_pause_between_checkpoints(
        setting.milliseconds
    ),
    "execution.checkpointing.timeout": lambda env, setting: env.get_checkpoint_config().set_checkpoint_timeout(
        setting.milliseconds
    ),
    "execution.checkpointing.tolerable-failed-checkpoints": lambda env, setting: (
        env.get_checkpoint_config().set_tolerable_checkpoint_failure_number(setting.number)
    ),
    **dict.fromkeys(
        ("execution.checkpointing.externalized-checkpoint-retention", "execution.checkpointing.externalized-checkpoint-cleanup"),
        lambda env, setting: env.get_checkpoint_config().set_externalized_checkpoint_cleanup(
            setting.member(ExternalizedCheckpointCleanup)
        ),
    ),
    **dict.fromkeys(
        ("execution.checkpointing.dir", "state.checkpoints.dir"),
        lambda env, setting: env.get_checkpoint_config().set_checkpoint_storage_dir(setting.text),
    ),
    **dict.fromkeys(
        ("execution.checkpointing.savepoint-dir", "state.savepoints.dir"),
        lambda env, setting: env.set_default_savepoint_directory(setting.text),
    ),
    "python.files": _files,
    "python.archives": _archives,
    "python.requirements": _requirements,
    "python.executable": lambda env, setting: env.set_python_executable(setting.text),
}
"""The effect of each setting, by its name."""


def configure(environment: EnvironmentSettings, configuration: Configuration, own: frozenset[str]) -> None:
    """Apply a configuration, and warn of settings without effect.

    :param environment: the environment to configure
    :param configuration: the settings by name
    :param own: the names of settings that the environment reads itself
    :raises StreamProgramError: if the value of a setting is invalid
    """
    idle = []
    named = _find_named_strategy(configuration)
    is_idle_strategy = named is not None and named[1] == _EXPONENTIAL
    for key in sorted(configuration.key_set()):
        if key in _APPLIED:
            _apply(environment, _Setting(configuration, key))
        elif key not in own and (not key.startswith(_RESTART) or is_idle_strategy):
            idle.append(key)
    strategy = _restart_strategy(configuration)
    if strategy is not None:
        environment.set_restart_strategy(strategy)
    if idle:
        _log.warning("Settings without effect here: %s. docs/datastream.md says which have one.", ", ".join(idle))


def _apply(environment: EnvironmentSettings, setting: _Setting) -> None:
    try:
        _APPLIED[setting.key](environment, setting)
    except (ValueError, TypeError) as error:
        raise StreamProgramError(f"The setting {setting.key} is {setting.text!r}: {error}") from error


def _find_named_strategy(configuration: Configuration) -> tuple[_Setting, str] | None:
    """Return the setting that names a restart strategy, and the name of the strategy."""
    for key in (f"{_RESTART}.type", _RESTART):
        if configuration.contains_key(key):
            setting = _Setting(configuration, key)
            return setting, _OTHER_NAMES.get(setting.text.lower(), setting.text.lower())
    return None


def _restart_strategy(configuration: Configuration) -> RestartStrategyConfiguration | None:
    """Return the restart strategy of a configuration.

    :returns: the strategy; None if the configuration names none that has an effect
    :raises StreamProgramError: if there is no such strategy
    """
    named = _find_named_strategy(configuration)
    if named is None or named[1] == _EXPONENTIAL:
        return None
    setting, kind = named

    def part(name: str) -> _Setting | None:
        key = f"{_RESTART}.{kind}.{name}"
        return _Setting(configuration, key) if configuration.contains_key(key) else None

    attempts, delay = part("attempts"), part("delay")
    interval, rate = part("failure-rate-interval"), part("max-failures-per-interval")
    pause = 1_000 if delay is None else delay.milliseconds
    match kind:
        case "none":
            return RestartStrategies.no_restart()
        case "fixed-delay":
            return RestartStrategies.fixed_delay_restart(1 if attempts is None else attempts.number, pause)
        case "failure-rate":
            return RestartStrategies.failure_rate_restart(
                1 if rate is None else rate.number, 60_000 if interval is None else interval.milliseconds, pause
            )
    raise setting.wrong("none, fixed-delay or failure-rate, and exponential-delay without effect")
