"""The interval join: each element meets the elements of the other stream whose times are within an interval around its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from airflow_pipelines.streams.elements import Batch
from airflow_pipelines.streams.errors import StreamProgramError
from airflow_pipelines.streams.failures import note_element
from airflow_pipelines.streams.functions import own_copy
from airflow_pipelines.streams.join_functions import ProcessJoinFunction
from airflow_pipelines.streams.operators.base import Operator, OperatorSpec, Timestamps
from airflow_pipelines.streams.operators.keyed import KeyedOperator
from airflow_pipelines.streams.operators.life import FunctionLife
from airflow_pipelines.streams.state.access import KeyedStates
from airflow_pipelines.streams.state.description import StateDescription, describe_state
from airflow_pipelines.streams.state.descriptors import MapStateDescriptor
from airflow_pipelines.streams.state.entries import EVENT_TIME, NO_ENTRY, Entry
from airflow_pipelines.streams.state.views import MapState

_LEFT, _RIGHT = MapStateDescriptor("interval-join/left"), MapStateDescriptor("interval-join/right")
LATE_DROPPED = "numLateRecordsDropped"


@dataclass(frozen=True)
class IntervalJoin(OperatorSpec):
    """An operator that joins two streams with keys by their times.

    :param function: the function that makes results of pairs
    :param lower: the least difference of the right time to the left one, in ms
    :param upper: the greatest difference of the right time to the left one, in ms
    :param late_tags: the names of the side outputs for late elements of the left and the right stream; None drops them
    """

    function: ProcessJoinFunction[Any, Any, Any]
    lower: int
    upper: int
    late_tags: tuple[str | None, str | None] = (None, None)
    is_keyed = True

    @property
    def needs_timestamps(self) -> bool:
        """True: elements are joined by their times."""
        return True

    def create(self) -> Operator:
        """Create one parallel instance."""
        return _IntervalJoin(self)

    def timestamps(self) -> Timestamps:
        """Return that pairs determine the timestamps."""
        return Timestamps.OWN

    def user_objects(self) -> Mapping[str, Any]:
        """Return the function."""
        return {"function": self.function}

    def own_states(self) -> Sequence[StateDescription]:
        """Return the states with the elements that wait for others, by their times."""
        return describe_state(_LEFT), describe_state(_RIGHT)


class _PairContext(ProcessJoinFunction.Context):
    def __init__(self) -> None:
        self.left = self.right = 0

    def get_left_timestamp(self) -> int:
        return self.left

    def get_right_timestamp(self) -> int:
        return self.right

    def get_timestamp(self) -> int:
        return max(self.left, self.right)


class _IntervalJoin(KeyedOperator):
    def __init__(self, spec: IntervalJoin) -> None:
        super().__init__()
        self._function = own_copy(spec.function)
        self._life = FunctionLife(self._function)
        self._late_tags = spec.late_tags
        # By port: the interval in which the times of the other stream's elements are, relative to those of this one.
        self._intervals = ((spec.lower, spec.upper), (-spec.upper, -spec.lower))
        # By port: the time after its own for which an element waits for others.
        self._waits = (max(spec.upper, 0), max(-spec.lower, 0))

    def open(self, state: Any | None) -> None:
        super().open(state)
        states = KeyedStates(self.store, self.context.clock, self.name)
        self._buffers: tuple[MapState, MapState] = (states.get_map_state(_LEFT), states.get_map_state(_RIGHT))
        self._pair = _PairContext()
        self._life.open(self.context)

    def process(self, batch: Batch, port: int) -> None:
        store = self.store
        hot = store.hot
        value = None
        try:
            for value, timestamp, key in zip(batch.values, batch.timestamps, batch.keys or (), strict=True):
                try:
                    store.entry = hot[key]
                except TypeError:  # a key without a hash
                    store.entry = store.find(key)
                if timestamp is None:
                    raise StreamProgramError(
                        "An interval join needs the times of its elements, and this one has none: put"
                        " assign_timestamps_and_watermarks(...) before key_by()."
                    )
                if timestamp < self.current_watermark:
                    self._leave_out(value, timestamp, self._late_tags[port])
                    continue
                self._keep(value, timestamp, port)
                self._meet(value, timestamp, port)
        except Exception as error:
            note_element(error, self.name, value)
            raise
        store.entry = NO_ENTRY
        self.collector.flush()

    def _leave_out(self, value: Any, timestamp: int, tag: str | None) -> None:
        if tag is None:
            self.context.subtask.metrics.counter(LATE_DROPPED).inc()
        else:
            self.collector.add_side(tag, value, timestamp)

    def _keep(self, value: Any, timestamp: int, port: int) -> None:
        buffer = self._buffers[port]
        buffer.put(timestamp, [*(buffer.get(timestamp) or ()), value])
        self.timers.register(EVENT_TIME, timestamp + self._waits[port])

    def _meet(self, value: Any, timestamp: int, port: int) -> None:
        lower, upper = self._intervals[port]
        pair = self._pair
        others = [item for item in self._buffers[1 - port].items() if timestamp + lower <= item[0] <= timestamp + upper]
        for other_timestamp, values in sorted(others, key=lambda item: item[0]):
            pair.left, pair.right = (timestamp, other_timestamp) if port == 0 else (other_timestamp, timestamp)
            for other in values:
                left, right = (value, other) if port == 0 else (other, value)
                results = self._function.process_element(left, right, pair)
                if results is not None:
                    self.collector.add_all(results, pair.get_timestamp())

    def on_timer(self, domain: int, timestamp: int, entry: Entry, namespace: Any) -> None:
        """Forget the elements that no other can meet any more."""
        for buffer, waits in zip(self._buffers, self._waits, strict=True):
            if buffer.contains(timestamp - waits):
                buffer.remove(timestamp - waits)

    def close(self) -> None:
        self._life.close()
