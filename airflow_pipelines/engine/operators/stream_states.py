"""The state of the stream program in the snapshots of a circuit: it is restored from them, and saved to them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from airflow_pipelines.engine.batch import Batch
from airflow_pipelines.engine.operators.operator import Operator
from airflow_pipelines.engine.operators.stream_graph import StreamGraphOperator
from airflow_pipelines.engine.snapshot import Snapshot
from airflow_pipelines.engine.storage.batch_store import BatchStore
from airflow_pipelines.engine.storage.state_files import NO_STATE_FILES, StateFiles, adopt_state, link_state
from airflow_pipelines.engine.streams.runtime import StreamRuntime
from airflow_pipelines.engine.streams.saved_state import PAGES, REST, rest_batch
from airflow_pipelines.engine.trace import Trace

Gained: TypeAlias = Mapping[str, Mapping[str, Sequence[Batch]]]
"""Rows that states gain, by the relation of the operator and the name of the state."""


@dataclass(frozen=True)
class SavedStates:
    """The state of a stream program for a checkpoint.

    :param gained: the rows that states gain
    :param files: the files of the database with the state by key, by the relation of the operator
    """

    gained: Gained
    files: Mapping[str, StateFiles]


class StreamStates:
    """The transfer of state between snapshots and the process of a stream program. It does nothing for a circuit without one.

    :param runtime: the runtime of the program; None for a circuit without one
    :param operators: the operators of the circuit
    :param store: the store of batches, and of the files of databases
    """

    def __init__(self, runtime: StreamRuntime | None, operators: Iterable[Operator[Any]], store: BatchStore) -> None:
        self._runtime = runtime
        self._store = store
        self._operators = [operator for operator in operators if isinstance(operator, StreamGraphOperator)]

    def open(self, snapshot: Snapshot, now: int | None) -> None:
        """Start the program with its state in a snapshot.

        :param snapshot: the circuit's newest snapshot
        :param now: the time in microseconds since the epoch; None if steps follow that have a time of their own
        """
        for operator in self._operators:
            files = snapshot.state_files.get(operator.relation, NO_STATE_FILES)
            operator.open(
                self._opened,
                snapshot.states.get(operator.relation),
                partial(link_state, self._store, files) if files.names else _link_nothing,
                now,
            )

    def save(self, snapshot: Snapshot) -> SavedStates:
        """Let the program write its state for a checkpoint.

        :param snapshot: the circuit's newest snapshot
        :returns: the state for :meth:`with_saved`
        :raises StreamStateLostError: if the newest step failed
        """
        gained: dict[str, Mapping[str, Sequence[Batch]]] = {}
        files: dict[str, StateFiles] = {}
        for operator in self._operators:
            states = snapshot.states.get(operator.relation) or operator.empty_states()
            changes, folder = self._opened.take_checkpoint()
            gained[operator.relation] = {REST: (rest_batch(changes, operator.node.program.operators, states),)}
            before = snapshot.state_files.get(operator.relation, NO_STATE_FILES)
            files[operator.relation] = adopt_state(self._store, folder, before) if changes.has_files else NO_STATE_FILES
        return SavedStates(gained, files)

    def with_saved(self, snapshot: Snapshot, saved: SavedStates) -> Snapshot:
        """Return a snapshot with the state of the program. Pages of an earlier release are in the database by now.

        :param snapshot: the circuit's newest snapshot, which may be newer than the one that the state was saved for
        :param saved: the state
        """
        if not self._operators:
            return snapshot
        later = self.gaining(snapshot, saved.gained)
        states = {name: {**kept, PAGES: _without_rows(kept[PAGES])} for name, kept in later.states.items() if name in saved.files}
        return replace(later, states={**later.states, **states}, state_files={**later.state_files, **saved.files})

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

    @property
    def _opened(self) -> StreamRuntime:
        if self._runtime is None:
            raise RuntimeError("a circuit without a process for its stream program cannot run it")
        return self._runtime


def _link_nothing(folder: Path) -> None:
    """Leave the folder of a database as it is: there is no state by key yet."""


def _without_rows(trace: Trace) -> Trace:
    return replace(trace, batches=()) if trace.batches else trace
