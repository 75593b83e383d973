"""The state of the stream program in the snapshots of a circuit: it is restored from them, and saved to them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from airflow_pipelines.engine.batch import Batch
from airflow_pipelines.engine.operators.operator import Operator
from airflow_pipelines.engine.operators.stream_graph import StreamGraphOperator
from airflow_pipelines.engine.snapshot import Snapshot
from airflow_pipelines.engine.streams.runtime import StreamRuntime
from airflow_pipelines.engine.streams.saved_state import SavedChanges

Gained: TypeAlias = Mapping[str, Mapping[str, Sequence[Batch]]]
"""Rows that states gain, by the relation of the operator and the name of the state."""


class StreamStates:
    """The transfer of state between snapshots and the process of a stream program. It does nothing for a circuit without one.

    :param runtime: the runtime of the program; None for a circuit without one
    :param operators: the operators of the circuit
    :param spill_if_large: the function that writes a large batch to files
    """

    def __init__(
        self, runtime: StreamRuntime | None, operators: Iterable[Operator[Any]], spill_if_large: Callable[[Batch], Batch]
    ) -> None:
        self._runtime = runtime
        self._operators = [operator for operator in operators if isinstance(operator, StreamGraphOperator)]
        self._spill_if_large = spill_if_large

    def open(self, snapshot: Snapshot, now: int | None) -> None:
        """Start the program with its state in a snapshot.

        :param snapshot: the circuit's newest snapshot
        :param now: the time in microseconds since the epoch; None if steps follow that have a time of their own
        """
        for operator in self._operators:
            operator.open(self._opened, snapshot.states.get(operator.relation), now)

    def changes(self, snapshot: Snapshot) -> Gained:
        """Collect the changes of the program's state since the last call.

        :param snapshot: the circuit's newest snapshot
        :returns: rows for :meth:`gaining`
        :raises StreamStateLostError: if the newest step failed
        """
        return {operator.relation: self._changes(operator, snapshot) for operator in self._operators}

    def timers(self, snapshot: Snapshot) -> Gained:
        """Return the rows that record the time at which the program last asked to be called.

        :param snapshot: the circuit's newest snapshot
        :returns: rows for :meth:`gaining`
        """
        return {
            operator.relation: operator.progress(self._opened, snapshot.states.get(operator.relation), snapshot.step)
            for operator in self._operators
        }

    def gaining(self, snapshot: Snapshot, gained: Gained) -> Snapshot:
        """Return a snapshot with rows added to its states.

        :param snapshot: the circuit's newest snapshot, which may be newer than the one that the rows were made for
        :param gained: the rows
        """
        by_relation = dict(snapshot.states)
        for operator in self._operators:
            states = dict(by_relation.get(operator.relation) or operator.empty_states())
            for name, batches in gained[operator.relation].items():
                for batch in batches:
                    states[name] = states[name].append(batch)
            by_relation[operator.relation] = states
        return replace(snapshot, states=by_relation) if self._operators else snapshot

    def _changes(self, operator: StreamGraphOperator, snapshot: Snapshot) -> Mapping[str, Sequence[Batch]]:
        states = snapshot.states.get(operator.relation) or operator.empty_states()
        saved = SavedChanges(states, operator.node.program.operators, self._spill_if_large)
        return saved.batches(self._opened.changes(saved.take))

    @property
    def _opened(self) -> StreamRuntime:
        if self._runtime is None:
            raise RuntimeError("a circuit without a process for its stream program cannot run it")
        return self._runtime
