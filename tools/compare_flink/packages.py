"""The two packages, with the same names."""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, Protocol

OURS = (
    "airflow_pipelines.datastream",
    "airflow_pipelines.datastream.functions",
    "airflow_pipelines.datastream.state",
    "airflow_pipelines.datastream.window",
    "airflow_pipelines.datastream.common",
    "airflow_pipelines.datastream.connectors",
)
FLINKS = (
    "pyflink.datastream",
    "pyflink.datastream.functions",
    "pyflink.datastream.state",
    "pyflink.datastream.window",
    "pyflink.common",
    "pyflink.common.watermark_strategy",
    "pyflink.datastream.connectors.file_system",
    "pyflink.datastream.connectors.number_seq",
)
WATERMARK_INTERVAL_MS = 1


class Package(Protocol):
    """One of the two packages."""

    @property
    def api(self) -> Any:
        """The public classes, and ``timed``, which gives a stream event time, with a watermark after each element."""

    def environment(self, *, batch: bool) -> Any:
        """Return a new environment with one task for each operator."""


def named(package: str, mode: str, pause_s: float) -> Package:
    """Return one of the packages.

    :param package: ``ours`` or ``flink``
    :param mode: the mode in which Flink runs Python: ``thread`` or ``process``
    :param pause_s: the seconds that Flink's input waits after each element, so that its timer emits a watermark
    """
    return Ours(names_of(OURS)) if package == "ours" else PyFlink(names_of(FLINKS), mode, pause_s)


def names_of(modules: tuple[str, ...]) -> SimpleNamespace:
    """Return all public names of some modules, in one namespace.

    :param modules: :data:`OURS` or :data:`FLINKS`
    """
    found: dict[str, Any] = {}
    for module in map(importlib.import_module, modules):
        found.update({name: getattr(module, name) for name in dir(module) if name[0].isupper()})
    return SimpleNamespace(**found)


@dataclass(frozen=True)
class Ours:
    """This project's package."""

    api: Any

    def __post_init__(self) -> None:
        api = self.api

        class AfterEachElement(api.WatermarkGenerator):  # type: ignore[misc, name-defined]
            def __init__(self, delay: int) -> None:
                self.delay = delay
                self.latest: int | None = None

            def on_event(self, event: Any, event_timestamp: int, output: Any) -> None:  # noqa: ARG002
                self.latest = event_timestamp if self.latest is None else max(self.latest, event_timestamp)
                output.emit_watermark(self.latest - self.delay - 1)

            def on_periodic_emit(self, output: Any) -> None:
                pass

        def timed(stream: Any, delay: int = 4, at: Callable[[Any], int] = _second) -> Any:
            strategy = api.WatermarkStrategy.for_generator(lambda: AfterEachElement(delay))
            return stream.assign_timestamps_and_watermarks(strategy.with_timestamp_assigner(lambda value, _: at(value)))

        api.timed = timed

    def environment(self, *, batch: bool) -> Any:
        """Return a new environment."""
        env = self.api.StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)
        return _in_batch_mode(self.api, env) if batch else env


@dataclass(frozen=True)
class PyFlink:
    """The published package. It emits watermarks by a timer only, so an input waits a little after each element."""

    api: Any
    mode: str
    pause_s: float

    def __post_init__(self) -> None:
        api, pause_s = self.api, self.pause_s

        def pause(value: Any) -> Any:
            time.sleep(pause_s)
            return value

        def timed(stream: Any, delay: int = 4, at: Callable[[Any], int] = _second) -> Any:
            class At(api.TimestampAssigner):  # type: ignore[misc, name-defined]
                def extract_timestamp(self, value: Any, record_timestamp: int) -> int:  # noqa: ARG002
                    return at(value)

            strategy = api.WatermarkStrategy.for_bounded_out_of_orderness(api.Duration.of_millis(delay))
            # The exchange gives the pause a task of its own, in which the timer is served between two elements.
            paused = stream.rebalance().map(pause)
            return paused.assign_timestamps_and_watermarks(strategy.with_timestamp_assigner(At()))

        api.timed = timed

    def environment(self, *, batch: bool) -> Any:
        """Return a new environment. Each element is passed on at once, because the watermarks are between them."""
        configuration = self.api.Configuration()
        for key, value in {"python.execution-mode": self.mode, "python.fn-execution.bundle.size": "1"}.items():
            configuration.set_string(key, value)
        env = self.api.StreamExecutionEnvironment.get_execution_environment(configuration).set_parallelism(1)
        env.set_buffer_timeout(0)
        env.get_config().set_auto_watermark_interval(WATERMARK_INTERVAL_MS)
        return _in_batch_mode(self.api, env) if batch else env


def _in_batch_mode(api: Any, env: Any) -> Any:
    env.set_runtime_mode(api.RuntimeExecutionMode.BATCH)
    return env


def _second(value: Any) -> int:
    return value[1]  # type: ignore[no-any-return]
