"""The packages that run the shared programs, each with what who knows it would set."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any, Protocol

from tools.compare_flink.packages import FLINKS, OURS, names_of


class Package(Protocol):
    """A package, in one of its ways to run Python."""

    @property
    def api(self) -> Any:
        """Its public names."""

    def environment(self) -> Any:
        """Create a new environment."""

    def discard(self) -> Any:
        """Return a sink that throws elements away."""

    def paced(self, env: Any, elements: int, pause_s: float) -> Any:
        """Return a stream of the times, in ns, at which its elements are given: one after each pause."""


class Ours:
    """A program run as ``python program.py``: one task in this process."""

    def __init__(self) -> None:
        self.api = names_of(OURS)

    def environment(self) -> Any:
        """Create a new environment."""
        return self.api.StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)

    def discard(self) -> Any:
        """Return a sink that throws elements away."""
        from benchmarks.streams.discard import Discard

        return Discard()

    def paced(self, env: Any, elements: int, pause_s: float) -> Any:
        """Return the stream of a source function that waits."""

        class Paced(self.api.SourceFunction):  # type: ignore[misc, name-defined]
            is_bounded = True

            def run(self, ctx: Any) -> Any:  # noqa: ARG002
                for _ in range(elements):
                    time.sleep(pause_s)
                    yield time.time_ns()

        return env.add_source(Paced(), "paced", self.api.Types.LONG())


class PyFlink:
    """Flink, with a task for each core, object reuse, and state on the heap.

    :param mode: ``thread`` runs Python in the Java process, ``process`` beside it
    :param bundle: how many elements go to a process together
    """

    def __init__(self, mode: str, bundle: int = 10_000) -> None:
        self.api = names_of(FLINKS)
        self._mode = mode
        self._bundle = bundle

    def environment(self) -> Any:
        """Create a new environment. In process mode elements and state go back and forth by the thousands."""
        configuration = self.api.Configuration()
        settings = {
            "python.execution-mode": self._mode,
            "python.fn-execution.bundle.size": str(self._bundle),
            "python.state.cache-size": "100000",
            "python.map-state.read-cache-size": "100000",
            "pipeline.object-reuse": "true",
            "state.backend.type": "hashmap",
        }
        for key, value in settings.items():
            configuration.set_string(key, value)
        return self.api.StreamExecutionEnvironment.get_execution_environment(configuration).set_parallelism(os.cpu_count() or 1)

    def discard(self) -> Any:
        """Flink's own sink for this."""
        from pyflink.datastream.connectors import Sink
        from pyflink.java_gateway import get_gateway

        return Sink(get_gateway().jvm.org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink())

    def paced(self, env: Any, elements: int, pause_s: float) -> Any:
        """Return the stream of a function that waits, because PyFlink has no sources in Python. Buffers are flushed at once."""

        def wait(number: int) -> int:  # noqa: ARG001
            time.sleep(pause_s)
            return time.time_ns()

        env.set_buffer_timeout(0)
        numbers = env.from_source(
            self.api.NumberSequenceSource(0, elements - 1),
            self.api.WatermarkStrategy.no_watermarks(),
            "numbers",
            self.api.Types.LONG(),
        )
        return numbers.map(wait, self.api.Types.LONG())


PACKAGES: dict[str, Callable[[], Package]] = {
    "ours": Ours,
    "flink_thread": lambda: PyFlink("thread"),
    "flink_process": lambda: PyFlink("process"),
    "flink_process_at_once": lambda: PyFlink("process", bundle=1),
}
