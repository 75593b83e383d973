"""What all operators have in common: how the loop calls them, and what they are given."""

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
from airflow_pipelines.streams.state.store import KeyedStore


class Output(Protocol):
    """Where an operator gives what it makes."""

    def emit(self, batch: Batch) -> None:
        """Give records."""
        ...

    def watermark(self, timestamp: int) -> None:
        """Give a watermark."""
        ...

    def idleness(self, *, idle: bool) -> None:
        """Become idle, or active again."""
        ...


class Timestamps(enum.Enum):
    """Whether the elements that an operator gives have timestamps."""

    OF_INPUT = enum.auto()
    """As those that it takes."""
    NONE = enum.auto()
    """They have none."""
    OWN = enum.auto()
    """They may have some, whatever it takes."""


@dataclass(frozen=True)
class TaskSettings:
    """What holds for all operators of a program. Travels by value.

    :param is_batch: input is grouped by key, and each key's result is final
    :param watermark_interval: ms between periodic watermarks; 0 for none
    :param share_values: values are passed on without being copied ("object reuse")
    :param call_seconds: how long one call of a function may compute, or go on giving results
    :param job_parameters: what the program gives to its functions
    :param attempt: from 0, one more for each restart
    :param hot_keys: how many keys of an operator a task keeps as objects at most, between two steps
    :param page_memory: how many bytes of pages with other keys an operator of a task keeps in memory; more go to a file
    :param scratch_folder: where that file is; None for the folder for temporary files
    """

    is_batch: bool = False
    watermark_interval: int = 200
    share_values: bool = False
    call_seconds: float = 60.0
    job_parameters: Mapping[str, str] = field(default_factory=dict)
    attempt: int = 0
    hot_keys: int = 200_000
    page_memory: int = 64 * 1024 * 1024
    scratch_folder: str | None = None


@dataclass
class OperatorContext:
    """What an operator is given by the loop.

    :param subtask: which of the parallel instances it is
    :param settings: what holds for the whole program
    :param clock: the time of the current step
    :param is_input_bounded: whether all that it reads ends by itself
    :param store: the state by key; None for an operator without keys
    :param side_output: gives where the values of a tag go
    """

    subtask: SubtaskInfo
    settings: TaskSettings
    clock: StepClock
    is_input_bounded: bool
    store: KeyedStore | None
    side_output: Callable[[str], Output | None]


class Operator(ABC):
    """One parallel instance of an operator. The loop is the only caller, in one thread."""

    def __init__(self) -> None:
        self.output: Output
        self.context: OperatorContext
        self.current_watermark = MIN_TIMESTAMP

    @property
    def name(self) -> str:
        """The name for people."""
        return self.context.subtask.name

    def open(self, state: Any | None) -> None:  # noqa: B027
        """Begin. ``output`` and ``context`` are set.

        :param state: what :meth:`snapshot` gave, None for a new one
        """

    @abstractmethod
    def process(self, batch: Batch, port: int) -> None:
        """Take records.

        :param batch: the records, which are the operator's own
        :param port: which input they come from
        """

    def watermark(self, timestamp: int) -> None:
        """Event time has come so far.

        :param timestamp: in ms, later than the one before
        """
        self.current_watermark = timestamp
        self.output.watermark(timestamp)

    def idleness(self, *, idle: bool) -> None:
        """All inputs are idle, or one is active again.

        :param idle: which of the two
        """
        self.output.idleness(idle=idle)

    @property
    def own_idleness(self) -> bool | None:
        """Whether what it gives is idle; None where that follows from what it gets."""
        return None

    def processing_time(self, now: int) -> None:  # noqa: B027
        """Processing time has come so far.

        :param now: in ms
        """

    def next_due(self) -> int | None:
        """When the operator wants to be called again without input.

        :returns: processing time in ms, None for never
        """
        return None

    def end_of_key(self) -> None:  # noqa: B027
        """All records of one key were given, in a program that groups its input by key."""

    def end_of_input(self) -> None:  # noqa: B027
        """Nothing follows."""

    def snapshot(self) -> Any | None:
        """What it keeps besides the state by key.

        :returns: something that can be pickled, None for nothing
        """
        return None

    def committed(self) -> None:  # noqa: B027
        """The last snapshot is durable."""

    def close(self) -> None:  # noqa: B027
        """The last call, also after an error."""


class OperatorSpec(ABC):
    """What an operator does, as the program says. Travels by value."""

    kind = "Operator"
    """What it is, in plans."""
    is_keyed = False
    """Whether it keeps state and timers by key."""
    has_two_inputs = False
    """Whether its inputs have different meanings."""
    has_watermark_strategy = False
    """Whether it makes event time."""

    @property
    def needs_timestamps(self) -> bool:
        """Whether it refuses elements without a timestamp."""
        return False

    def timestamps(self) -> Timestamps:
        """Whether what it gives has timestamps.

        :returns: where they come from
        """
        return Timestamps.OF_INPUT

    @abstractmethod
    def create(self) -> Operator:
        """Make one parallel instance.

        :returns: the instance, with its own copy of the user's function
        """

    def state_of_task(self, states: Sequence[Any], index: int, parallelism: int) -> Any:
        """What one task goes on from where there were other numbers of tasks.

        :param states: what the snapshots of all tasks gave
        :param index: number of the task
        :param parallelism: number of tasks now
        :returns: what the task is opened with
        """
        return states[index % len(states)]

    def user_objects(self) -> Mapping[str, Any]:
        """What of the user travels with it.

        :returns: objects by what they are
        """
        return {}

    def own_states(self) -> Sequence[StateDescription]:
        """What the operator itself keeps by key, besides the states that the user's functions ask for.

        :returns: the states
        """
        return ()
