"""A snapshot: all traces and states after one step. It is immutable, so readers are independent of later steps."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass, field, replace
from typing import Any

from pyspark.sql.types import StructType

from airflow_pipelines.engine.lateness import Waterlines
from airflow_pipelines.engine.layout import table_layout
from airflow_pipelines.engine.limits import DEFAULT_LIMITS, Limits
from airflow_pipelines.engine.storage.batch_store import BatchStore
from airflow_pipelines.engine.storage.manifest import CANONICAL_FORM
from airflow_pipelines.engine.storage.state_files import StateFiles, hold_state
from airflow_pipelines.engine.trace import Trace

UNNAMED = ""
"""The name of an operator's only state as read from a manifest. A circuit replaces it by the operator's name for the state."""
_SEVERAL = "states"
INTERNAL = "$"
"""The separator between a view's name and the number of an internal relation of its plan."""


def owner(name: str, relations: Set[str]) -> str:
    """Return the relation that ``name`` belongs to: itself, or the view whose plan created it."""
    while name not in relations and INTERNAL in name:
        name = name.rpartition(INTERNAL)[0]
    return name


@dataclass(frozen=True, slots=True)
class Holdings:
    """A description of a snapshot's contents, without the rows.

    :param contents: the number of stored rows of each relation whose contents are there
    :param states: the number of stored rows of the states of each operator, by the relation that it computes
    :param layouts: the layout of each of these
    :param noted: the relations whose layout was saved with them; None if the release that saved them recorded none
    """

    contents: Mapping[str, int] = field(default_factory=dict)
    states: Mapping[str, int] = field(default_factory=dict)
    layouts: Mapping[str, str] = field(default_factory=dict)
    noted: frozenset[str] | None = frozenset()

    @property
    def is_initial(self) -> bool:
        """True if no step was evaluated, so that there are no contents: each step leaves some, even if they have no rows.

        State of a stream program may be there before.
        """
        return not self.contents

    @classmethod
    def of_manifest(cls, manifest: Mapping[str, Any]) -> Holdings:
        """Return the holdings of the snapshot that a manifest describes."""
        noted = manifest.get("layouts")
        return cls(
            {name: _stored_rows(part) for name, part in manifest["traces"].items()},
            {name: sum(map(_stored_rows, _parts_of(states).values())) for name, states in manifest["states"].items()},
            saved_layouts(manifest),
            None if noted is None else frozenset(noted),
        )


def _parts_of(states: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the states of one operator in a manifest, by name. A single state has no name there."""
    parts: Mapping[str, Any] = states.get(_SEVERAL, {UNNAMED: states})
    return parts


def _stored_rows(trace: Mapping[str, Any]) -> int:
    return sum(int(batch["rows"]) for batch in trace["batches"])


@dataclass(frozen=True, slots=True, eq=False)
class Snapshot:
    """The contents after a step. Internal relations of a view's plan are called ``view$1``, ``view$2`` ...

    :param step: the step's number
    :param traces: the traces of every relation whose contents are kept
    :param states: the states of every operator that has some, by the relation that it computes and by their names
    :param clock: the time of the newest tick in microseconds since the epoch; None before the first
    :param waterlines: the waterlines by relation and column, as text
    :param layouts: the layout of each relation, see :mod:`airflow_pipelines.engine.layout`
    :param canonical_form: the version of the canonical form of the rows' values
    :param state_files: files of the state of operators that keep some in a database, by the relation that they compute
    """

    step: int = 0
    traces: Mapping[str, Trace] = field(default_factory=dict)
    states: Mapping[str, Mapping[str, Trace]] = field(default_factory=dict)
    clock: int | None = None
    waterlines: Waterlines = field(default_factory=dict)
    layouts: Mapping[str, str] = field(default_factory=dict)
    canonical_form: int = CANONICAL_FORM
    state_files: Mapping[str, StateFiles] = field(default_factory=dict)

    @property
    def is_initial(self) -> bool:
        """True if no step was evaluated, see :attr:`Holdings.is_initial`."""
        return not self.traces

    def flush(self, store: BatchStore) -> Snapshot:
        """Return the same contents with every row in files of ``store``."""
        return replace(
            self,
            traces={name: trace.flush(store) for name, trace in self.traces.items()},
            states=self._with_states(lambda trace: trace.flush(store)),
        )

    def keep(self, relations: Set[str]) -> Snapshot:
        """Return only the contents of ``relations``, including those of their internal relations."""
        return replace(
            self,
            traces={name: trace for name, trace in self.traces.items() if owner(name, relations) in relations},
            states={name: states for name, states in self.states.items() if owner(name, relations) in relations},
            state_files={name: files for name, files in self.state_files.items() if owner(name, relations) in relations},
        )

    def renamed(self, names: Mapping[str, str], layouts: Mapping[str, str]) -> Snapshot:
        """Return the same rows with other names of relations.

        :param names: the new names by the old ones
        :param layouts: the layouts of the relations under their new names
        """
        return replace(
            self,
            traces={names.get(name, name): trace for name, trace in self.traces.items()},
            states={names.get(name, name): states for name, states in self.states.items()},
            state_files={names.get(name, name): files for name, files in self.state_files.items()},
            layouts={**self.layouts, **{name: layouts[name] for name in names.values()}},
        )

    def files(self) -> set[str]:
        """Return the names of all files that the snapshot needs."""
        of_rows = {name for trace in (*self.traces.values(), *self.all_states().values()) for name in trace.files()}
        return of_rows.union(*(files.files for files in self.state_files.values()))

    @property
    def holdings(self) -> Holdings:
        """A description of the snapshot's contents, without the rows."""
        contents = {name: trace.rows for name, trace in self.traces.items()}
        states = {name: sum(trace.rows for trace in kept.values()) for name, kept in self.states.items()}
        layouts = {name: layout for name, layout in self.layouts.items() if name in contents or name in states}
        return Holdings(contents, states, layouts, frozenset(layouts))

    def with_merged_traces(self, is_due: Callable[[Trace], bool], merge: Callable[[Trace], Trace]) -> Snapshot:
        """Return the same rows with some traces in fewer batches, or elsewhere.

        :param is_due: a predicate: True if a trace is to be merged
        :param merge: a function that merges one trace
        :returns: the snapshot itself if no trace is due
        """
        traces = {name: merge(trace) for name, trace in self.traces.items() if is_due(trace)}
        states = {
            relation: {name: merge(trace) if is_due(trace) else trace for name, trace in kept.items()}
            for relation, kept in self.states.items()
            if any(map(is_due, kept.values()))
        }
        if not traces and not states:
            return self
        return replace(self, traces={**self.traces, **traces}, states={**self.states, **states})

    def largest_holders(self, size: int, limits: Limits) -> set[Trace]:
        """Return the traces that hold most in memory, as many as together hold a size.

        :param size: the size in bytes; none are returned for one that is not positive
        :param limits: the limits that say which batches count
        """
        holders = set[Trace]()
        if size <= 0:
            return holders
        held = {trace: trace.held_bytes(limits) for trace in (*self.traces.values(), *self.all_states().values())}
        for trace in sorted(filter(held.get, held), key=held.__getitem__, reverse=True):
            if size <= 0:
                break
            holders.add(trace)
            size -= held[trace]
        return holders

    def all_states(self) -> dict[tuple[str, str], Trace]:
        """Return the states of all operators, by relation and name."""
        return {(relation, name): state for relation, states in self.states.items() for name, state in states.items()}

    def _with_states(self, change: Callable[[Trace], Trace]) -> dict[str, dict[str, Trace]]:
        return {name: {part: change(trace) for part, trace in states.items()} for name, states in self.states.items()}

    def to_manifest(self) -> dict[str, Any]:
        """Return the snapshot as JSON.

        :raises ValueError: if it is not flushed
        """
        return {
            "step": self.step,
            "traces": {name: trace.to_manifest() for name, trace in sorted(self.traces.items())},
            "states": {name: _states_to_manifest(states) for name, states in sorted(self.states.items())},
            "clock": self.clock,
            "waterlines": {name: dict(columns) for name, columns in sorted(self.waterlines.items())},
            "canonical_form": self.canonical_form,
            "layouts": {name: self.layouts[name] for name in sorted({*self.traces, *self.states} & self.layouts.keys())},
            "state_files": {name: dict(files.names) for name, files in sorted(self.state_files.items())},
        }

    @classmethod
    def from_manifest(cls, manifest: Mapping[str, Any], store: BatchStore, limits: Limits = DEFAULT_LIMITS) -> Snapshot:
        """Return the snapshot that :meth:`to_manifest` described; small batches are read into memory.

        :param manifest: as :meth:`to_manifest` made it
        :param store: the store with the batches' files
        :param limits: the limits that define a small batch
        :raises StorageError: when a file is missing or damaged
        """
        return cls(
            int(manifest["step"]),
            {name: Trace.from_manifest(part, store, limits) for name, part in manifest["traces"].items()},
            {name: states_of(part, store, limits) for name, part in manifest["states"].items()},
            manifest.get("clock"),
            manifest.get("waterlines", {}),
            saved_layouts(manifest),
            # Releases before the canonical form recorded none.
            manifest.get("canonical_form", 0),
            {name: hold_state(store, names) for name, names in manifest.get("state_files", {}).items()},
        )


def _states_to_manifest(states: Mapping[str, Trace]) -> dict[str, Any]:
    """Return the states of one operator as JSON. A single state has no name there, as in releases before there were several."""
    if len(states) == 1:
        return next(iter(states.values())).to_manifest()
    return {_SEVERAL: {name: trace.to_manifest() for name, trace in sorted(states.items())}}


def states_of(part: Mapping[str, Any], store: BatchStore, limits: Limits = DEFAULT_LIMITS) -> dict[str, Trace]:
    """Return the states of one operator in a manifest, by name.

    :param part: the operator's part of a manifest
    :param store: the store with the batches' files
    :param limits: the limits that define a small batch
    :raises StorageError: when a file is missing or damaged
    """
    return {name: Trace.from_manifest(state, store, limits) for name, state in _parts_of(part).items()}


def saved_layouts(manifest: Mapping[str, Any]) -> dict[str, str]:
    """Return the layouts of the traces and states in a snapshot's manifest, by relation.

    If none was recorded, the layout of a table is used, so that only tables are recognised.
    """
    noted = manifest.get("layouts", {})
    parts = {**manifest["states"], **manifest["traces"]}
    return {
        name: noted[name] if name in noted else table_layout(StructType.fromJson(part["schema"])) for name, part in parts.items()
    }
