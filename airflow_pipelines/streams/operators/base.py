"""The common base of all operators: their interface to the loop, and their context."""

from __future__ import annotations

import enum
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from airflow_pipelines.streams.clock import StepClock
from airflow_pipelines.streams.elements import MIN_TIMESTAMP, Batch
from airflow_pipelines.streams.sinks import SubtaskInfo
from airflow_pipelines.streams.state.description import StateDescription
from airflow_pipelines.streams.state.hot_limit import HOT_BYTES
from airflow_pipelines.streams.state.store import KeyedStore


class Output(Protocol):
    """The output of an operator."""

    def emit(self, batch: Batch) -> None:
        """Emit records."""
        ...

    def watermark(self, timestamp: int) -> None:
        """Emit a watermark."""
        ...

    def idleness(self, *, idle: bool) -> None:
        """Announce that the output becomes idle, or active again."""
        ...


class Timestamps(enum.Enum):
    """The origin of the timestamps of an operator's output."""

    OF_INPUT = enum.auto()
    """Timestamps if the input has them."""
    NONE = enum.auto()
    """No timestamps."""
    OWN = enum.auto()
    """Timestamps of the operator's own, which are possible whatever the input has."""


@dataclass(frozen=True)
class TaskSettings:
    """The settings of all operators of a program. They are sent by value.

    :param is_batch: True if input is grouped by key, and each key's result is final
    :param watermark_interval: ms between periodic watermarks; 0 for none
    :param share_values: True if values are passed on without being copied ("object reuse")
    :param call_seconds: the number of seconds that one call of a function may compute, or continue to give results
    :param job_parameters: the parameters that the program gives to its functions
    :param attempt: the number of the attempt, from 0, one more for each restart
    :param hot_keys: the maximum number of keys that an operator of a task keeps as objects between two steps; None for as many as
        ``hot_bytes`` allows
    :param hot_bytes: the maximum number of bytes of these objects, of all operators and tasks of a process
    :param cache_bytes: the maximum number of bytes of files with other keys that the database keeps in memory
    :param scratch_folder: the folder of the database of a program that runs by itself; None for the folder for temporary files
    """

    is_batch: bool = False
    watermark_interval: int = 200
    share_values: bool = False
    call_seconds: float = 60.0
    job_parameters: Mapping[str, str] = field(default_factory=dict)
    attempt: int = 0
    hot_keys: int | None = None
    hot_bytes: int = HOT_BYTES
    cache_bytes: int = 64 * 1024 * 1024
    scratch_folder: str | None = None


@dataclass
class OperatorContext:
    """The context that the loop gives to an operator.

    :param subtask: the parallel instance
    :param settings: the settings of the whole program
    :param clock: the clock of the current step
    :param is_input_bounded: True if all its inputs end by themselves
    :param store: the keyed state; None for an operator without keys
    :param side_output: a function that returns the output for the values of a tag
    """

    subtask: SubtaskInfo
    settings: TaskSettings
    clock: StepClock
    is_input_bounded: bool
    store: KeyedStore | None
    side_output: Callable[[str], Output | None]


class Operator(ABC):
    """One parallel instance of an operator. Only the loop calls it, in one thread."""

    def __init__(self) -> None:
        self.output: Output
        self.context: OperatorContext
        self.current_watermark = MIN_TIMESTAMP

    @property
    def name(self) -> str:
        """The name, for people."""
        return self.context.subtask.name

    def open(self, state: Any | None) -> None:  # noqa: B027
        """Prepare for work. ``output`` and ``context`` are set.

        :param state: the result of :meth:`snapshot`, None for a new operator
        """

    @abstractmethod
    def process(self, batch: Batch, port: int) -> None:
        """Process records.

        :param batch: the records, which belong to the operator
        :param port: the input from which they come
        """

    def watermark(self, timestamp: int) -> None:
        """Advance event time.

        :param timestamp: the watermark in ms, later than the one before
        """
        self.current_watermark = timestamp
        self.output.watermark(timestamp)

    def idleness(self, *, idle: bool) -> None:
        """Handle that all inputs become idle, or one becomes active again.

        :param idle: True for idle, False for active
        """
        self.output.idleness(idle=idle)

    @property
    def own_idleness(self) -> bool | None:
        """True if the output is idle; None if that follows from the inputs."""
        return None

    def processing_time(self, now: int) -> None:  # noqa: B027
        """Advance processing time.

        :param now: ms
        """

    def next_due(self) -> int | None:
        """Return the time at which the operator needs another call even without input.

        :returns: processing time in ms, None for never
        """
        return None

    def end_of_key(self) -> None:  # noqa: B027
        """Handle the end of the records of one key, in a program that groups its input by key."""

    def end_of_input(self) -> None:  # noqa: B027
        """Handle the end of the input."""

    def snapshot(self) -> Any | None:
        """Return the state besides the keyed state.

        :returns: a value that can be pickled, None for nothing
        """
        return None

    def notify_checkpoint_complete(self) -> None:  # noqa: B027
        """Handle that the last snapshot is durable."""

    def close(self) -> None:  # noqa: B027
        """Release all resources. This is the last call, also after an error."""


class OperatorSpec(ABC):
    """The specification of an operator, as the program gives it. It is sent by value."""

    kind = "Operator"
    """The kind of the operator, for plans."""
    is_keyed = False
    """True if the operator keeps state and timers by key."""
    has_watermark_strategy = False
    """True if it generates event time."""

    @property
    def needs_timestamps(self) -> bool:
        """True if it refuses elements without a timestamp."""
        return False

    def timestamps(self) -> Timestamps:
        """Return the origin of the output's timestamps.

        :returns: the origin
        """
        return Timestamps.OF_INPUT

    @abstractmethod
    def create(self) -> Operator:
        """Create one parallel instance.

        :returns: the instance, with its own copy of the user's function
        """

    def state_of_task(self, states: Sequence[Any], index: int, parallelism: int) -> Any:
        """Return the state from which one task resumes if the number of tasks has changed.

        :param states: the snapshots of all tasks
        :param index: the number of the task
        :param parallelism: the current number of tasks
        :returns: the state with which the task is opened
        """
        return states[index % len(states)]

    def user_objects(self) -> Mapping[str, Any]:
        """Return the user's objects that are sent with the operator.

        :returns: the objects, by their role
        """
        return {}

    def own_states(self) -> Sequence[StateDescription]:
        """Return the states of the operator itself, besides those that the user's functions ask for.

        :returns: the states
        """
        return ()
