"""The decision how a program goes on from the state of an earlier one: the difference, its refusals, and the state that is kept."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass, field, replace
from enum import Enum

from airflow_pipelines.contract.error_codes import ErrorCode
from airflow_pipelines.contract.problems import Problem
from airflow_pipelines.engine.front_end import FrontEnd
from airflow_pipelines.engine.outdated import find_outdated
from airflow_pipelines.engine.program import Program
from airflow_pipelines.engine.renaming import renamed_relations
from airflow_pipelines.engine.snapshot import Holdings
from airflow_pipelines.engine.wiring import Wiring, build_wiring
from airflow_pipelines.host.streams.stream_changes import SavedOperator, StreamChange, stream_change
from airflow_pipelines.program.diff import PipelineDiff, ProgramDiff, compare
from airflow_pipelines.program.fingerprints import Fingerprints
from airflow_pipelines.program.identity import ProgramIdentity
from airflow_pipelines.program.names import SYSTEM_VIEW
from airflow_pipelines.program.relations import ViewKind
from airflow_pipelines.program.streams import source_table


class BootstrapMode(Enum):
    """The way in which new and changed views are evaluated at a start."""

    PLAIN = "plain"
    """A mode in which the contents of the views go to their outputs."""
    SILENT = "silent"
    """A mode in which the outputs of the views receive nothing of the evaluation."""
    CONCURRENT = "concurrent"
    """A mode like plain in which only views may have changed, so that all others could go on meanwhile."""

    @classmethod
    def of(cls, *, silent: bool, concurrent: bool) -> BootstrapMode:
        """Return the mode for two flags of a request, of which at most one may be set."""
        if silent:
            return cls.SILENT
        return cls.CONCURRENT if concurrent else cls.PLAIN


@dataclass(frozen=True, slots=True)
class BootstrapPlan:
    """A plan for going on from a saved program with a new one.

    :param diff: the difference between the two programs
    :param kept: the relations whose contents and state are kept
    :param evaluated: the views to evaluate from scratch
    :param kept_connectors: the connectors that go on from their positions
    :param outdated: the views that have not changed, but are evaluated anew because of the form in which they were saved; each with
        the reason
    :param renamed: the views that take over the state saved under another name, with that name
    :param renamed_relations: the new names of all relations that these views consist of, by the names under which they were saved
    :param streams: the change to the state of a stream program
    :param refusals: the reasons why the new program cannot go on from the saved state
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
        """Refuse a program that cannot go on from the saved state.

        :param mode: the mode in which its changed views are to be evaluated
        :raises Problem: ``BootstrapNotAllowed`` if it cannot go on
        """
        if self.refusals:
            raise self.refusals[0]
        changes = self.diff.program_diff or ProgramDiff()
        tables = ", ".join(sorted(changes.fresh_tables))
        if mode is BootstrapMode.CONCURRENT and tables:
            raise _make_refusal(
                f"A program with added or modified tables cannot be bootstrapped concurrently: {tables}. "
                "Start it without concurrent_bootstrap."
            )


@dataclass(frozen=True, slots=True)
class SavedProgram:
    """A program that has saved state, or that runs.

    :param identity: the program
    :param holdings: the saved state, without that of the journal
    :param front_end: the front end that compiles it
    :param journaled: the layouts of the relations in the journal's records
    :param running: the wiring of its circuit, or None if it does not run
    :param operators: returns the operators of its stream program, and the state that they keep
    """

    identity: ProgramIdentity
    holdings: Holdings
    front_end: FrontEnd
    journaled: Mapping[str, str] = field(default_factory=dict)
    running: Wiring | None = None
    operators: Callable[[], tuple[SavedOperator, ...]] = tuple

    def wiring(self) -> Wiring:
        """Return the wiring that this release gives the program."""
        return self.running or build_wiring(self.front_end.compile(self.identity.source), "auto")

    def late(self) -> frozenset[str]:
        """Return its relations with lateness."""
        return self.front_end.late_relations(self.identity.source)

    def declarations(self) -> Mapping[str, str]:
        """Return the text of each relation's declaration, by name."""
        return self.front_end.declarations(self.identity.source)


def plan_bootstrap(saved: SavedProgram, new: Program, wiring: Wiring) -> BootstrapPlan:
    """Compare a saved program and its state with a new program.

    :param saved: the saved program and its state
    :param new: the new program
    :param wiring: the wiring of the new program's circuit
    :returns: the plan, with the reasons for a refusal
    """
    difference = compare(saved.identity.fingerprints, new.fingerprints)
    changes = difference.program_diff or ProgramDiff()
    relations = {*new.tables, *new.views, SYSTEM_VIEW}
    kept = frozenset(relations - changes.fresh_tables - changes.fresh_views)
    sources = _Sources(new, changes.fresh_tables, kept, lambda: wiring.kept & saved.wiring().kept)
    renamed, names = _find_renamed_views(saved, changes, wiring, sources)
    evaluated = changes.fresh_views - renamed.keys()
    sources = replace(sources, unchanged=kept | renamed.keys())
    refusals = [] if changes.is_empty else _find_refusals(saved.late(), sources, evaluated)
    outdated_views, unusable = _find_outdated_views(saved, new, wiring, kept)
    reopened = _find_reopened(new, difference)
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


def _find_reopened(new: Program, difference: PipelineDiff) -> frozenset[str]:
    """Return the relation inputs of a stream program whose connectors have changed or gone.

    An end of input that they have reached no longer counts.
    """
    changes = difference.program_diff or ProgramDiff()
    changed = {connector.relation for connector in new.connectors if connector.endpoint in difference.modified_input_connectors}
    changed.update(changes.removed_tables)
    return frozenset() if new.streams is None else frozenset(each.uid for each in new.streams.inputs if each.table in changed)


@dataclass(frozen=True, slots=True)
class _Sources:
    """The relations that new and changed views can be evaluated from.

    :param program: the new program
    :param fresh_tables: its tables that start empty
    :param unchanged: its relations that go on with their contents
    :param held: returns the relations whose contents both programs keep. It may have to compile the saved program
    """

    program: Program
    fresh_tables: Set[str]
    unchanged: Set[str]
    held: Callable[[], Set[str]]

    def unreadable(self, views: Set[str]) -> list[tuple[str, str]]:
        """Return the pairs of a view to evaluate and a table that it needs but that is not materialized.

        A view that has contents is read instead of its tables.

        :param views: the views to evaluate
        """
        kinds = self.program.views
        materialized = {name for name in kinds.keys() & self.unchanged if kinds[name].kind is ViewKind.MATERIALIZED}
        pairs = self._find_unreadable(views, materialized)
        return pairs and self._find_unreadable(views, materialized | (self.held() & self.unchanged))

    def _find_unreadable(self, views: Set[str], readable: Set[str]) -> list[tuple[str, str]]:
        tables = self.program.tables
        known = (views | readable) - tables.keys()
        return sorted(
            (view, name)
            for view in views
            for name in self.program.relations_behind(view, known) & tables.keys()
            if name not in self.fresh_tables | self.program.hidden_relations and not tables[name].materialized
        )


def compare_programs(old: Program, new: Program) -> PipelineDiff:
    """Return the difference between two programs, regardless of the saved state.

    :param old: the program before
    :param new: the program after
    :raises Problem: ``BootstrapNotAllowed`` if the new program cannot go on from the state that the old one leaves
    """
    difference = compare(old.fingerprints, new.fingerprints)
    changes = difference.program_diff or ProgramDiff()
    fresh = changes.fresh_views - _match_queries(changes, old.fingerprints, new.fingerprints).keys()
    unchanged = {*new.tables, *new.views} - changes.fresh_tables - fresh
    sources = _Sources(
        new, changes.fresh_tables, unchanged, lambda: build_wiring(old, "auto").kept & build_wiring(new, "auto").kept
    )
    refusals = [] if changes.is_empty else _find_refusals(old.late_relations, sources, fresh)
    if refusals:
        raise refusals[0]
    return difference


def _match_queries(changes: ProgramDiff, old: Fingerprints, new: Fingerprints) -> dict[str, str]:
    """Return the added views that have the same query as a removed view, with the name of that view."""
    removed = {old.views[name]: name for name in changes.removed_views}
    matches = ((view, removed.pop(new.views[view], None)) for view in changes.added_views)
    return {view: name for view, name in matches if name is not None}


def _find_renamed_views(
    saved: SavedProgram, changes: ProgramDiff, wiring: Wiring, sources: _Sources
) -> tuple[dict[str, str], dict[str, str]]:
    """Return the added views that take over a removed one, and the new names of all relations of these views."""
    renamed: dict[str, str] = {}
    names: dict[str, str] = {}
    for view, old in _match_queries(changes, saved.identity.fingerprints, sources.program.fingerprints).items():
        relations = renamed_relations(saved.wiring(), old, wiring, view, saved.holdings, sources.unchanged)
        # Without contents there would be nothing to send to its outputs. So it is evaluated, unless it cannot be.
        if relations is not None and (view in wiring.kept or sources.unreadable({view})):
            renamed[view] = old
            names.update(relations)
    return renamed, names


def _find_refusals(saved_late: frozenset[str], sources: _Sources, evaluated: Set[str]) -> list[Problem]:
    refusals = []
    late = saved_late | sources.program.late_relations
    if late:
        refusals.append(
            _make_refusal(
                f"A pipeline that has relations with lateness cannot be modified without losing state: {', '.join(sorted(late))}. "
                "Clear its storage to start the changed program from scratch."
            )
        )
    unreadable = sources.unreadable(evaluated)
    if unreadable:
        listed = ", ".join(f"view {view} reads table {table}" for view, table in unreadable)
        refusals.append(
            _make_refusal(
                "The new or modified views cannot be computed, because tables that they read, themselves or through views without "
                f"contents, are not materialized: {listed}. Such a table is no replay source for them. Declare the tables with "
                "'materialized' = 'true', or clear the pipeline's storage."
            )
        )
    return refusals


def _find_outdated_views(
    saved: SavedProgram, new: Program, wiring: Wiring, kept: frozenset[str]
) -> tuple[Mapping[str, str], list[Problem]]:
    """Return the unchanged views to evaluate anew, with the reasons, and the problems of saved state that cannot be used."""
    outdated = find_outdated(new, wiring, saved.holdings, kept)
    tables = new.tables.keys() & kept
    # The journal's records have only rows of tables.
    other = {name for name, layout in saved.journaled.items() if name in tables and wiring.layouts[name] != layout}
    reasons = [f"table {table} has other columns" for table in sorted({*outdated.tables, *other})]
    reasons += [
        f"view {view} would have to be evaluated from table {table}, whose rows are not kept" for view, table in outdated.lost
    ]
    reasons += [f"view {view} depends on what came late, and cannot be evaluated again" for view in outdated.timed]
    if not reasons:
        return outdated.views, []
    unusable = _make_refusal(
        f"The state was saved by a release that keeps it in another way than this one: {'; '.join(reasons)}. "
        "Go on with the release that saved it, or clear the pipeline's storage to start from scratch."
    )
    return outdated.views, [unusable]


def _make_refusal(message: str) -> Problem:
    return Problem(ErrorCode.BOOTSTRAP_NOT_ALLOWED, message)
