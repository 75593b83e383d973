"""An input of a table: its counters, and the position of its source."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from airflow_pipelines.connectors.base import Lag
from airflow_pipelines.engine.storage.connector_state import InputState, Position
from airflow_pipelines.host.inputs.frontier import Frontier
from airflow_pipelines.host.metrics.connector_metrics import InputMetrics
from airflow_pipelines.host.metrics.health import Health
from airflow_pipelines.host.metrics.latencies import Latencies
from airflow_pipelines.program.connectors import Connector


@dataclass(frozen=True, slots=True)
class Consumed:
    """The rows that one step takes from one input; ``position`` is the position of a declared connector's source after them."""

    records: int
    size_bytes: int
    position: Position | None = None

    def plus(self, later: Consumed) -> Consumed:
        """Return the sum of this and of a later consumption."""
        position = self.position if later.position is None else later.position
        return Consumed(self.records + later.records, self.size_bytes + later.size_bytes, position)


NOTHING_CONSUMED = Consumed(0, 0)


class InputEndpoint:
    """An input of a table as statistics show it: a declared connector, or the endpoint of pushed rows (``connector`` None)."""

    def __init__(self, name: str, table: str, connector: Connector | None = None) -> None:
        self.name = name
        self.table = table
        self.connector = connector
        self.metrics = InputMetrics()
        self.paused = False
        self.waiting = False
        """True if it starts by itself once others have reached their end."""
        self.health = Health()
        self.measure_lag: Callable[[], Lag | None] = lambda: None
        """A function that returns the lag behind its source."""
        self.gauges: Mapping[str, int] = {}
        """The figures that only its source has, by their names."""
        self.position: Position | None = None
        """The position of the source after the last committed step."""
        self.kept_position: Position | None = None
        """The newest position that a checkpoint or the journal has: a restart goes on there at the latest."""
        self._frontier = Frontier()
        self._latencies = Latencies()

    @property
    def fatal_error(self) -> str | None:
        """The reason why it cannot go on, or None."""
        return self.health.fatal

    @property
    def has_ended(self) -> bool:
        """True if nothing follows, and steps have processed all rows that came."""
        return self.metrics.end_of_input and self.metrics.processed_records == self.metrics.total_records

    @property
    def transient(self) -> bool:
        """True if the endpoint came from a request, so that it never counts for completion."""
        return self.connector is None

    def count_received(self, records: int, size_bytes: int) -> None:
        """Count rows that arrived."""
        self.metrics.total_records += records
        self.metrics.total_bytes += size_bytes
        self._frontier.receive()
        if records:
            self._latencies.receive(self.metrics.total_records)

    def collect(self, consumed: Consumed) -> None:
        """Count rows that a transaction has collected, whose step has not come yet."""
        self.metrics.collected_records += consumed.records
        self.metrics.collected_bytes += consumed.size_bytes

    def forget_collected(self) -> None:
        """Reset the counts of the collected rows, once the transaction's step has come."""
        self.metrics.collected_records = self.metrics.collected_bytes = 0

    def consume(self, consumed: Consumed) -> None:
        """Count rows that a committed step consumed, and move on in the source."""
        self.metrics.processed_records += consumed.records
        self.metrics.processed_bytes += consumed.size_bytes
        self._latencies.process(self.metrics.processed_records)
        if consumed.position is not None:
            self.position = consumed.position
            self._frontier.process(consumed.position, self.metrics.processed_records)

    def complete(self) -> None:
        """Note that the results of everything consumed have been delivered."""
        self.complete_until(self.metrics.processed_records)

    def complete_until(self, records: int) -> None:
        """Note that the results of the first ``records`` rows have been delivered."""
        self.metrics.completed_records = records
        self._frontier.complete(records)

    @property
    def has_moved(self) -> bool:
        """True if the position of the source differs from the one in the newest checkpoint and the journal."""
        return self.position != self.kept_position

    def keep(self, position: Position | None) -> None:
        """Note the position that a checkpoint or the journal has."""
        self.kept_position = position

    def secure(self) -> None:
        """Note that the effect of everything consumed is on disk."""
        self.metrics.durable_records = self.metrics.processed_records

    def to_state(self, consumed: Consumed = NOTHING_CONSUMED) -> InputState:
        """Return the state for a checkpoint.

        :param consumed: the consumption of a step that is not committed yet, if the state is to be the one after it
        """
        counts = self.metrics.to_state(consumed.records, consumed.size_bytes)
        position = self.position if consumed.position is None else consumed.position
        return InputState(self.table, self.connector is not None, position, self.paused, counts)

    def restore(self, state: InputState, *, same: bool) -> None:
        """Restore the saved state: the counters, and the position if the connector is the same.

        :param state: the saved state
        :param same: True if the connector has not changed, so that it goes on from its position
        """
        if same:
            self.position = self.kept_position = state.position
            self.paused = state.paused
        self.metrics = InputMetrics.from_state(state.counts)

    def to_wire(self, *, errors: bool = False) -> dict[str, Any]:
        """Return the wire's InputEndpointStatus."""
        metrics = self.metrics
        wire: dict[str, Any] = {
            "endpoint_name": self.name,
            "config": {"stream": self.table},
            "metrics": {
                **metrics.to_wire(),
                "processing_latency_p99_micros": self._latencies.p99_micros,
                "lag": _lag_to_wire(self.measure_lag()),
                **self.gauges,
            },
            "fatal_error": self.fatal_error,
            "paused": self.paused or self.waiting,
            "barrier": False,
            "health": self.health.to_wire(),
            "completed_frontier": self._frontier.to_wire(),
        }
        if errors:
            wire["parse_errors"] = metrics.parse_errors.to_wire()
            wire["transport_errors"] = metrics.transport_errors.to_wire()
        return wire


def _lag_to_wire(lag: Lag | None) -> dict[str, Any] | None:
    return None if lag is None else asdict(lag)
