"""Execution of a chain of operators over the elements of one task, in order. Functions of users are called nowhere else."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeAlias

from airflow_pipelines.streams.clock import StepClock
from airflow_pipelines.streams.elements import (
    END_OF_INPUT,
    MIN_TIMESTAMP,
    Batch,
    Element,
    EndOfInput,
    Idleness,
    Watermark,
)
from airflow_pipelines.streams.errors import StreamProgramError
from airflow_pipelines.streams.exchanges import ExchangeWriter
from airflow_pipelines.streams.failures import note_operator
from airflow_pipelines.streams.fanout import Fanout
from airflow_pipelines.streams.graph.chains import Chain, Link, Step
from airflow_pipelines.streams.grouping import GroupedInput
from airflow_pipelines.streams.keys import group_to_task, groups_of_task
from airflow_pipelines.streams.known_splits import KnownSplits
from airflow_pipelines.streams.metrics import MetricGroup
from airflow_pipelines.streams.operators.base import Operator, OperatorContext, TaskSettings
from airflow_pipelines.streams.operators.source import SourceOperator
from airflow_pipelines.streams.pickled import to_bytes
from airflow_pipelines.streams.sinks import SubtaskInfo
from airflow_pipelines.streams.snapshots import TaskSnapshot
from airflow_pipelines.streams.state.hot_limit import HotLimit
from airflow_pipelines.streams.state.rows import MemoryRows, Row, RowKey, StateRows
from airflow_pipelines.streams.state.store import KeyedStore
from airflow_pipelines.streams.watermarks import Combination

RowsOfOperator: TypeAlias = Callable[[str, range, int], StateRows]
"""A function that gives the rows at rest of an operator: its uid, the key groups of the task, and the number of all key groups."""
Channel: TypeAlias = tuple[int, int]
"""The origin of elements: the number of the link, and the number of the upstream task."""


@dataclass(frozen=True)
class TaskPart:
    """One operator of a task.

    :param uid: the uid of the operator
    :param index: the number of the task
    :param operator: the parallel instance
    :param metrics: its metrics
    :param store: its keyed state, if it has keys
    """

    uid: str
    index: int
    operator: Operator
    metrics: MetricGroup
    store: KeyedStore | None


class ChainTask:
    """One parallel instance of a chain, with its state.

    :param chain: the chain to run
    :param index: the number of the task
    :param into: the links into the chain, each with its number of upstream tasks
    :param out: the links out of the chain, each with the chain that reads
    :param settings: the settings of the whole program
    :param clock: the clock of the current step
    :param rows_of: the function that gives the rows at rest of each operator; rows are in memory by default
    """

    def __init__(
        self,
        chain: Chain,
        index: int,
        into: list[tuple[Link, int]],
        out: list[tuple[Link, Chain]],
        settings: TaskSettings,
        clock: StepClock,
        rows_of: RowsOfOperator = lambda uid, groups, most: MemoryRows(),  # noqa: ARG005
    ) -> None:
        self.chain = chain
        self.index = index
        self._settings = settings
        self._clock = clock
        self._ports = {link.number: link.edge.port for link, _ in into}
        self._channels = Combination((link.number, upstream) for link, tasks in into for upstream in _upstreams(link, tasks, index))
        self.operators: dict[int, Operator] = {}
        groups = groups_of_task(index, chain.parallelism, chain.max_parallelism)
        self._rows = {
            step.uid: rows_of(step.uid, groups, chain.max_parallelism) for step in chain.steps if step.node.operator.is_keyed
        }
        self._stores = {
            uid: KeyedStore(chain.max_parallelism, rows, HotLimit(settings.hot_keys, settings.hot_bytes))
            for uid, rows in self._rows.items()
        }
        self._fanouts: dict[tuple[int, str | None], Fanout] = {}
        self.exchanges: dict[Link, ExchangeWriter] = {}
        self.metrics: dict[str, MetricGroup] = {}
        self.has_ended = False
        self.known_splits: KnownSplits | None = None
        """The splits of the source that the task reads, if it shares them with other tasks."""
        self._out = out
        self._names: dict[object, str] = {
            (link.number, upstream): f"task {upstream + 1} of {link.source_name!r}"
            for link, tasks in into
            for upstream in _upstreams(link, tasks, index)
        }
        self._idle = False

    def _load(self, uid: str, rows: Mapping[RowKey, Row | None]) -> None:
        stored = self._rows.get(uid)
        if stored is None:
            raise StreamProgramError(
                f"There is state by key for the operator {uid!r}, which keeps none in the chain {self.chain.name!r}. Give the"
                " operator that shall go on with it this name with uid(), or start without this state."
            )
        for group in {group for group, _ in rows}:
            if group_to_task(group, self.chain.parallelism, self.chain.max_parallelism) != self.index:
                raise StreamProgramError(
                    f"State of the key group {group} of the operator {uid!r} was given to task {self.index + 1} of"
                    f" {self.chain.parallelism}, which does not own it."
                )
        stored.load(rows)

    def open(
        self,
        snapshot: TaskSnapshot | None,
        metrics: Mapping[str, MetricGroup] | None = None,
    ) -> None:
        """Create the operators and open them, the readers before their writers.

        :param snapshot: the snapshot to resume from, None for the beginning
        :param metrics: the metrics to continue, by uid of the operator
        :raises StreamProgramError: if a row does not belong to the task
        """
        snapshot = snapshot or TaskSnapshot()
        self.metrics.update(metrics or {})
        for uid, rows in snapshot.rows.items():
            if rows:
                self._load(uid, rows)
        self._create_operators()
        for step in self.chain.steps:
            for edge in step.inputs:
                self._get_fanout(edge.source, edge.tag).to_operator(self.operators[step.node.id], edge.port)
        for link, reader in self._out:
            writer = ExchangeWriter(
                link.edge.exchange,
                reader.head.name,
                (self.index, self.chain.parallelism),
                reader.parallelism,
                reader.max_parallelism,
            )
            self.exchanges[link] = writer
            self._get_fanout(link.edge.source, link.edge.tag).to_exchange(writer)
        for writer, turn in zip(self.exchanges.values(), snapshot.turns, strict=False):
            writer.restore(turn)
        if snapshot.channels is not None:
            self._channels.restore(pickle.loads(snapshot.channels))  # noqa: S301 (the program's own storage)
            self._idle = self._channels.all_idle
        for step in reversed(self.chain.steps):
            self._open_step(step, snapshot)
        self._announce()
        head = self.operators[self.chain.head.node.id]
        self._head: Operator | GroupedInput = head
        if self._settings.is_batch and self.chain.head.node.operator.is_keyed:
            self._head = GroupedInput(head)

    def _create_operators(self) -> None:
        for step in self.chain.steps:
            self.operators[step.node.id] = step.node.operator.create()
            self._fanouts[(step.node.id, None)] = Fanout(step, step.node.convert)
        if self.source is not None:
            self.source.known_splits = self.known_splits

    def _announce(self) -> None:
        """Send the watermark and idleness to the readers.

        After a restore the number of readers, and so their channels, may have changed.
        """
        for link, writer in self.exchanges.items():
            watermark = self.operators[link.edge.source].current_watermark
            if watermark > MIN_TIMESTAMP:
                writer.watermark(watermark)
        head = self.operators[self.chain.head.node.id]
        if self.source is None:
            if self._idle:
                head.idleness(idle=True)
        elif head.own_idleness:
            self._fanouts[(self.chain.head.node.id, None)].idleness(idle=True)
        for link, writer in self.exchanges.items():
            if self._is_idle(link.edge.source):
                writer.idleness(idle=True)

    def _is_idle(self, node_id: int) -> bool:
        """Return True if the output of an operator is idle."""
        own = self.operators[node_id].own_idleness
        if own is not None:
            return own
        inputs = next(step.inputs for step in self.chain.steps if step.node.id == node_id)
        return self._is_idle(inputs[0].source) if inputs else self._idle

    def _open_step(self, step: Step, snapshot: TaskSnapshot) -> None:
        operator = self.operators[step.node.id]
        metrics = self.metrics.setdefault(step.uid, MetricGroup())
        node_id = step.node.id
        operator.output = self._fanouts[(node_id, None)]
        operator.context = OperatorContext(
            subtask=SubtaskInfo(
                step.name,
                self.index,
                self.chain.parallelism,
                self._settings.attempt,
                self.chain.max_parallelism,
                self._settings.job_parameters,
                metrics,
            ),
            settings=self._settings,
            clock=self._clock,
            is_input_bounded=step.is_input_bounded,
            store=self._stores.get(step.uid),
            side_output=lambda tag: self._fanouts.get((node_id, tag)),
        )
        operator.current_watermark = snapshot.watermarks.get(step.uid, operator.current_watermark)
        state = snapshot.operators.get(step.uid)
        operator.open(None if state is None else pickle.loads(state))  # noqa: S301 (the program's own storage)

    def _get_fanout(self, node_id: int, tag: str | None) -> Fanout:
        fanout = self._fanouts.get((node_id, tag))
        if fanout is None:
            step = next(step for step in self.chain.steps if step.node.id == node_id)
            fanout = self._fanouts[(node_id, tag)] = Fanout(step, step.node.side_converts.get(tag or ""))
            self._fanouts[(node_id, None)].to_side(fanout)
        return fanout

    @property
    def source(self) -> SourceOperator | None:
        """The operator that reads a source, if this chain begins with one."""
        head = self.operators[self.chain.head.node.id]
        return head if isinstance(head, SourceOperator) else None

    def inputs(self) -> tuple[str, Combination, dict[object, str]]:
        """Return the event time of each input.

        :returns: name of the task, watermarks, and names of the inputs
        """
        source = self.source
        name = repr(SubtaskInfo(self.chain.name, self.index, self.chain.parallelism).name_with_subtasks)
        return (name, self._channels, self._names) if source is None else (name, *source.inputs())

    def poll(self, limits: Mapping[int, int], default: int) -> int:
        """Read the source.

        :param limits: the maximum number of elements to read from a split, by its number
        :param default: the maximum for all other splits
        :returns: the number of elements that were read
        """
        source = self.source
        if source is None or self.has_ended:
            return 0
        number = source.poll(limits, default)
        if source.has_ended:
            self._end()
        return number

    def run(self, inputs: Iterable[tuple[Channel, list[Element]]]) -> None:
        """Process the output of other chains.

        :param inputs: the elements of each channel, in order
        """
        head = self._head
        store = self._stores.get(self.chain.head.uid)
        for channel, elements in inputs:
            port = self._ports[channel[0]]
            for element in elements:
                if element.__class__ is Batch:
                    if store is not None and element.keys is not None:
                        store.load(element.keys)
                    head.process(element, port)
                else:
                    self._control(channel, element)

    def _control(self, channel: Channel, element: Element) -> None:
        channels = self._channels
        if isinstance(element, Watermark):
            if channels.update(channel, element.timestamp):
                self._advance(channels.watermark)
            self._tell_idleness()
        elif isinstance(element, Idleness):
            if channels.set_idle(channel, idle=element.idle):
                self._advance(channels.watermark)
            self._tell_idleness()
        elif isinstance(element, EndOfInput) and channels.end(channel) and not self.has_ended:
            self._end()

    def _tell_idleness(self) -> None:
        idle = self._channels.all_idle
        if idle != self._idle:
            self._idle = idle
            self._head.idleness(idle=idle)

    def _advance(self, watermark: int) -> None:
        if watermark > self.operators[self.chain.head.node.id].current_watermark:
            self._head.watermark(watermark)

    def _end(self) -> None:
        if isinstance(self._head, GroupedInput):
            self._head.finish()
        for step in self.chain.steps:
            operator = self.operators[step.node.id]
            operator.end_of_input()
        self.has_ended = True
        for exchange in self.exchanges.values():
            exchange.control(END_OF_INPUT)

    def processing_time(self, now: int) -> None:
        """Advance processing time.

        :param now: ms
        """
        if not self.has_ended:
            for step in self.chain.steps:
                self.operators[step.node.id].processing_time(now)

    def next_due(self) -> int | None:
        """Return the time at which the task needs another call even without input.

        :returns: processing time in ms, None for never
        """
        if self.has_ended:
            return None
        due = [operator.next_due() for operator in self.operators.values()]
        return min((each for each in due if each is not None), default=None)

    def end_of_step(self) -> None:
        """End a step: evict state if it uses too much memory."""
        for step in self.chain.steps:
            store = self._stores.get(step.uid)
            if store is not None:
                try:
                    store.evict()
                except Exception as error:
                    note_operator(error, step.name, "bringing state to rest")
                    raise

    def watermark(self) -> int:
        """Return the event time that has been reached in the whole chain.

        :returns: the lowest watermark of an operator
        """
        return min(operator.current_watermark for operator in self.operators.values())

    def state_bytes(self) -> int:
        """Return the approximate size of the keyed state.

        :returns: the size in bytes, as it would be stored
        """
        return sum(store.estimated_bytes() for store in self._stores.values())

    def parts(self) -> Iterator[TaskPart]:
        """Yield the operators, one after the other.

        :returns: each operator with its metrics and its state
        """
        for step in self.chain.steps:
            yield TaskPart(step.uid, self.index, self.operators[step.node.id], self.metrics[step.uid], self._stores.get(step.uid))

    def snapshot(self) -> TaskSnapshot:
        """Return the complete state of the task.

        :returns: a value that another task can be opened with
        """
        snapshot = self.prepare()
        for uid in self._stores:
            with self._noting(uid):
                snapshot.rows[uid] = dict(self._stores[uid].rows())
        return snapshot

    def changes(self) -> TaskSnapshot:
        """Return the state of a task whose rows are in memory, with only those that changed since it was opened.

        :returns: the state; None for a row that no longer exists
        """
        snapshot = self.flush()
        for uid, rows in self._rows.items():
            assert isinstance(rows, MemoryRows)  # noqa: S101 (others record no changes)
            snapshot.rows[uid] = rows.take_changes()
        return snapshot

    def flush(self) -> TaskSnapshot:
        """Write the changes of the keyed state to the rows at rest.

        :returns: the state of the task besides its rows
        """
        snapshot = self.prepare()
        for uid, store in self._stores.items():
            with self._noting(uid):
                store.flush()
        return snapshot

    def prepare(self) -> TaskSnapshot:
        """Prepare the output that was written to be committed.

        :returns: the state of the task besides keyed state
        """
        snapshot = TaskSnapshot(turns=[writer.position() for writer in self.exchanges.values()])
        snapshot.channels = pickle.dumps(self._channels.snapshot(), 5)
        for step in self.chain.steps:
            with self._noting(step.uid):
                operator = self.operators[step.node.id]
                state = operator.snapshot()
                if state is not None:
                    snapshot.operators[step.uid] = to_bytes(state, "The state of the operator")
                snapshot.watermarks[step.uid] = operator.current_watermark
        return snapshot

    @contextmanager
    def _noting(self, uid: str) -> Iterator[None]:
        """Note the operator in errors."""
        try:
            yield
        except Exception as error:
            note_operator(error, next(step.name for step in self.chain.steps if step.uid == uid), "taking a snapshot")
            raise

    def notify_checkpoint_complete(self) -> None:
        """Notify all operators that the last snapshot is durable."""
        for operator in self.operators.values():
            operator.notify_checkpoint_complete()

    def close(self) -> None:
        """Close all operators, also if one of them raises.

        :raises Exception: if closing failed; the first error that was raised
        """
        first: Exception | None = None
        for step in self.chain.steps:
            operator = self.operators.get(step.node.id)
            if operator is not None and hasattr(operator, "context"):
                try:
                    operator.close()
                except Exception as error:  # noqa: BLE001 (raised below, when all others are closed)
                    first = first or error
        if first is not None:
            raise first


def _upstreams(link: Link, tasks: int, index: int) -> list[int]:
    from_same = link.edge.exchange.kind.value == "FORWARD"
    return [index] if from_same else list(range(tasks))
