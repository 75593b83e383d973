"""Deciding how a program goes on from the state of an earlier one: the difference, its refusals, and what is kept."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass, field, replace
from enum import Enum

from airflow_pipelines.contract.error_codes import ErrorCode
from airflow_pipelines.contract.problems import Problem
from airflow_pipelines.engine.front_end import FrontEnd
from airflow_pipelines.engine.outdated import outdated
from airflow_pipelines.engine.program import Program
from airflow_pipelines.engine.renaming import renamed_relations
from airflow_pipelines.engine.snapshot import Holdings
from airflow_pipelines.engine.wiring import Wiring, wired
from airflow_pipelines.host.streams.stream_changes import KeptOperator, StreamChange, stream_change
from airflow_pipelines.program.diff import PipelineDiff, ProgramDiff, compare
from airflow_pipelines.program.fingerprints import Fingerprints
from airflow_pipelines.program.identity import ProgramIdentity
from airflow_pipelines.program.names import SYSTEM_VIEW
from airflow_pipelines.program.relations import ViewKind
from airflow_pipelines.program.streams import source_table


class BootstrapMode(Enum):
    """How new and changed views are evaluated at a start."""

    PLAIN = "plain"
    """Their contents go to their outputs."""
    SILENT = "silent"
    """Their outputs get nothing of it."""
    CONCURRENT = "concurrent"
    """As plain. Only views may have changed, so that all others could go on meanwhile."""

    @classmethod
    def of(cls, *, silent: bool, concurrent: bool) -> BootstrapMode:
        """The mode for two flags of a request, of which at most one may be set."""
        if silent:
            return cls.SILENT
        return cls.CONCURRENT if concurrent else cls.PLAIN


@dataclass(frozen=True, slots=True)
class BootstrapPlan:
    """How to get from the saved program to the new one.

    :param diff: what is different
    :param kept: relations whose contents and state stay
    :param evaluated: views to evaluate from scratch
    :param kept_connectors: connectors that go on from their positions
    :param outdated: views that have not changed, but are evaluated anew because of how they were saved; each with the reason
    :param renamed: views that take over what was saved under another name, with that name
    :param renamed_relations: the new names of all relations that these views consist of, by the names that they were saved under
    :param streams: what becomes of the state of a stream program
    :param refusals: why the new program cannot go on from what is saved
    """

    diff: PipelineDiff
    kept: frozenset[str]
    evaluated: frozenset[str]
    kept_connectors: frozenset[str]
    outdated: Mapping[str, str] = field(default_factory=dict)
    renamed: Mapping[str, str] = field(default_factory=dict)
    renamed_relations: Mapping[str, str] = field(default_factory=dict)
    streams: StreamChange = field(default_factory=StreamChange)
    refusals: tuple[Problem, ...] = ()

    def check(self, mode: BootstrapMode) -> None:
        """Go on only with a program that can.

        :param mode: how its changed views are to be evaluated
        :raises Problem: ``BootstrapNotAllowed`` when it cannot
        """
        if self.refusals:
            raise self.refusals[0]
        changes = self.diff.program_diff or ProgramDiff()
        tables = ", ".join(sorted(changes.fresh_tables))
        if mode is BootstrapMode.CONCURRENT and tables:
            raise _not_allowed(
                f"A program with added or modified tables cannot be bootstrapped concurrently: {tables}. "
                "Start it without concurrent_bootstrap."
            )


@dataclass(frozen=True, slots=True)
class SavedProgram:
    """A program of which something is saved, or that runs.

    :param identity: the program
    :param holdings: what is saved, without what the journal has
    :param front_end: the one that compiles it
    :param journaled: layouts of the relations in the journal's records
    :param running: the wiring of its circuit, None when it does not run
    :param operators: gives the operators of its stream program, and what they keep
    """

    identity: ProgramIdentity
    holdings: Holdings
    front_end: FrontEnd
    journaled: Mapping[str, str] = field(default_factory=dict)
    running: Wiring | None = None
    operators: Callable[[], tuple[KeptOperator, ...]] = tuple

    def wiring(self) -> Wiring:
        """The wiring that this release gives the program."""
        return self.running or wired(self.front_end.compile(self.identity.source), "auto")

    def late(self) -> frozenset[str]:
        """Its relations with lateness."""
        return self.front_end.late_relations(self.identity.source)

    def declarations(self) -> Mapping[str, str]:
        """How its relations are written, by name."""
        return self.front_end.declarations(self.identity.source)


def plan_bootstrap(saved: SavedProgram, new: Program, wiring: Wiring) -> BootstrapPlan:
    """Compare a saved program and its state with a new program.

    :param saved: what is there
    :param new: the new program
    :param wiring: that of the new program's circuit
    :returns: the plan, with what refuses it
    """
    difference = compare(saved.identity.fingerprints, new.fingerprints)
    changes = difference.program_diff or ProgramDiff()
    relations = {*new.tables, *new.views, SYSTEM_VIEW}
    kept = frozenset(relations - changes.fresh_tables - changes.fresh_views)
    sources = _Sources(new, changes.fresh_tables, kept, lambda: wiring.kept & saved.wiring().kept)
    renamed, names = _renamed_views(saved, changes, wiring, sources)
    evaluated = changes.fresh_views - renamed.keys()
    sources = replace(sources, unchanged=kept | renamed.keys())
    refusals = [] if changes.is_empty else _refusals(saved.late(), sources, evaluated)
    outdated_views, unusable = _outdated_views(saved, new, wiring, kept)
    reopened = _reopened(new, difference)
    streams = stream_change(saved.operators(), new.streams, changes.fresh_tables | evaluated, reopened)
    moved = set(map(source_table, streams.fresh_sources | streams.fresh_inputs))
    connectors = {
        connector.endpoint
        for connector in new.connectors
        if connector.endpoint not in difference.fresh_connectors and connector.relation not in changes.fresh_tables | moved
    }
    return BootstrapPlan(
        diff=difference,
        kept=kept | renamed.keys(),
        evaluated=evaluated,
        kept_connectors=frozenset(connectors),
        outdated=outdated_views,
        renamed=renamed,
        renamed_relations=names,
        streams=streams,
        refusals=(*refusals, *unusable, *streams.refusals),
    )


def _reopened(new: Program, difference: PipelineDiff) -> frozenset[str]:
    """The relation inputs of a stream program that end with other connectors than before, or with none, so that the end that they
    may have had is none.
    """
    changes = difference.program_diff or ProgramDiff()
    changed = {connector.relation for connector in new.connectors if connector.endpoint in difference.modified_input_connectors}
    changed.update(changes.removed_tables)
    return frozenset() if new.streams is None else frozenset(each.uid for each in new.streams.inputs if each.table in changed)


@dataclass(frozen=True, slots=True)
class _Sources:
    """What new and changed views can be evaluated from.

    :param program: the new program
    :param fresh_tables: its tables that start empty
    :param unchanged: its relations that go on with what they have
    :param held: gives the relations whose contents both programs keep. The saved program may have to be compiled for it
    """

    program: Program
    fresh_tables: Set[str]
    unchanged: Set[str]
    held: Callable[[], Set[str]]

    def unreadable(self, views: Set[str]) -> list[tuple[str, str]]:
        """Which of some views have to be evaluated from the rows of which tables, although these are not materialized.

        A view that has contents is read instead of its tables.

        :param views: those to evaluate
        """
        kinds = self.program.views
        materialized = {name for name in kinds.keys() & self.unchanged if kinds[name].kind is ViewKind.MATERIALIZED}
        found = self._unreadable(views, materialized)
        return found and self._unreadable(views, materialized | (self.held() & self.unchanged))

    def _unreadable(self, views: Set[str], readable: Set[str]) -> list[tuple[str, str]]:
        tables = self.program.tables
        known = (views | readable) - tables.keys()
        return sorted(
            (view, name)
            for view in views
            for name in self.program.relations_behind(view, known) & tables.keys()
            if name not in self.fresh_tables | self.program.hidden_relations and not tables[name].materialized
        )


def compared(old: Program, new: Program) -> PipelineDiff:
    """The difference between two programs, whatever is saved.

    :param old: the program before
    :param new: the program after
    :raises Problem: ``BootstrapNotAllowed`` when the new program cannot go on from what the old one leaves
    """
    difference = compare(old.fingerprints, new.fingerprints)
    changes = difference.program_diff or ProgramDiff()
    fresh = changes.fresh_views - _same_queries(changes, old.fingerprints, new.fingerprints).keys()
    unchanged = {*new.tables, *new.views} - changes.fresh_tables - fresh
    sources = _Sources(new, changes.fresh_tables, unchanged, lambda: wired(old, "auto").kept & wired(new, "auto").kept)
    refusals = [] if changes.is_empty else _refusals(old.late_relations, sources, fresh)
    if refusals:
        raise refusals[0]
    return difference


def _same_queries(changes: ProgramDiff, old: Fingerprints, new: Fingerprints) -> dict[str, str]:
    """The added views that have the same query as a removed one, with that one's name."""
    removed = {old.views[name]: name for name in changes.removed_views}
    found = ((view, removed.pop(new.views[view], None)) for view in changes.added_views)
    return {view: name for view, name in found if name is not None}


def _renamed_views(
    saved: SavedProgram, changes: ProgramDiff, wiring: Wiring, sources: _Sources
) -> tuple[dict[str, str], dict[str, str]]:
    """The added views that take over a removed one, and the new names of all relations of these."""
    renamed: dict[str, str] = {}
    names: dict[str, str] = {}
    for view, old in _same_queries(changes, saved.identity.fingerprints, sources.program.fingerprints).items():
        found = renamed_relations(saved.wiring(), old, wiring, view, saved.holdings, sources.unchanged)
        # Without contents there would be nothing to send to its outputs; it is evaluated, unless it cannot be.
        if found is not None and (view in wiring.kept or sources.unreadable({view})):
            renamed[view] = old
            names.update(found)
    return renamed, names


def _refusals(saved_late: frozenset[str], sources: _Sources, evaluated: Set[str]) -> list[Problem]:
    found = []
    late = saved_late | sources.program.late_relations
    if late:
        found.append(
            _not_allowed(
                f"A pipeline that has relations with lateness cannot be modified without losing state: {', '.join(sorted(late))}. "
                "Clear its storage to start the changed program from scratch."
            )
        )
    unreadable = sources.unreadable(evaluated)
    if unreadable:
        listed = ", ".join(f"view {view} reads table {table}" for view, table in unreadable)
        found.append(
            _not_allowed(
                "The new or modified views cannot be computed, because tables that they read, themselves or through views without "
                f"contents, are not materialized: {listed}. Such a table is no replay source for them. Declare the tables with "
                "'materialized' = 'true', or clear the pipeline's storage."
            )
        )
    return found


def _outdated_views(
    saved: SavedProgram, new: Program, wiring: Wiring, kept: frozenset[str]
) -> tuple[Mapping[str, str], list[Problem]]:
    """The views to evaluate anew although they have not changed, and why; and what is saved in a way that cannot be used."""
    found = outdated(new, wiring, saved.holdings, kept)
    tables = new.tables.keys() & kept
    # The journal's records have rows of tables, and nothing else.
    other = {name for name, layout in saved.journaled.items() if name in tables and wiring.layouts[name] != layout}
    reasons = [f"table {table} has other columns" for table in sorted({*found.tables, *other})]
    reasons += [f"view {view} would have to be evaluated from table {table}, whose rows are not kept" for view, table in found.lost]
    reasons += [f"view {view} depends on what came late, and cannot be evaluated again" for view in found.timed]
    if not reasons:
        return found.views, []
    unusable = _not_allowed(
        f"The state was saved by a release that keeps it in another way than this one: {'; '.join(reasons)}. "
        "Go on with the release that saved it, or clear the pipeline's storage to start from scratch."
    )
    return found.views, [unusable]


def _not_allowed(message: str) -> Problem:
    return Problem(ErrorCode.BOOTSTRAP_NOT_ALLOWED, message)
