"""The consequences of a program change for a pipeline, for the person who decides about it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from airflow_pipelines.contract.change_plan import (
    ChangePlan,
    Declaration,
    Refusal,
    RelationChange,
    RelationChangeKind,
    RelationKind,
    ViewEvaluation,
)
from airflow_pipelines.contract.file_changes import file_changes
from airflow_pipelines.contract.program_versions import ProgramChange, ProgramVersion
from airflow_pipelines.engine.front_end import FrontEnd
from airflow_pipelines.engine.program import Program
from airflow_pipelines.engine.snapshot import owner
from airflow_pipelines.engine.stages import needed_for
from airflow_pipelines.engine.wiring import Wiring
from airflow_pipelines.host.changes.bootstrap import BootstrapPlan, SavedProgram
from airflow_pipelines.host.changes.evaluation_times import UNMEASURED, Factors
from airflow_pipelines.program.diff import PipelineDiff, ProgramDiff
from airflow_pipelines.program.fingerprints import Fingerprints
from airflow_pipelines.program.names import SYSTEM_VIEW
from airflow_pipelines.program.sources import ProgramSource
from airflow_pipelines.program.streams import is_hidden

STAGE_S = 0.15
"""The seconds that a stage takes, however few rows it reads."""
ROWS_PER_S = 500_000
"""The number of rows that a stage reads in a second."""


@dataclass(frozen=True, slots=True)
class PlannedChange:
    """A change of the program in the form that is shown to the person who decides about it.

    :param bootstrap: the plan by which the new program would go on from the saved state
    :param programs: the two programs
    :param plan: the consequences for relations and their rows
    :param computed_s: the seconds that the evaluation takes, computed from its rows and stages alone
    """

    bootstrap: BootstrapPlan
    programs: ProgramChange
    plan: ChangePlan
    computed_s: float = 0.0

    def to_wire(self) -> dict[str, Any]:
        """Return the details of a pipeline that awaits approval; a request for a plan gets the same answer."""
        return {
            "approval_diff": self.bootstrap.diff.to_wire(),
            "programs": self.programs.to_wire(),
            "views_evaluated_anew": dict(self.bootstrap.outdated),
            "plan": self.plan.to_wire(),
        }


@dataclass(frozen=True, slots=True)
class NewProgram:
    """A program that is to go on from the state that another one left.

    :param source: its source
    :param version: the ``program_version`` that the service gave it, or None if it has none yet
    :param program: the compiled program
    :param wiring: the wiring of its circuit
    :param front_end: the front end that compiled it
    """

    source: ProgramSource
    version: int | None
    program: Program
    wiring: Wiring
    front_end: FrontEnd


def planned_change(bootstrap: BootstrapPlan, saved: SavedProgram, new: NewProgram, factors: Factors = UNMEASURED) -> PlannedChange:
    """Return the consequences of going on from a saved program with a new one.

    :param bootstrap: the plan by which it goes on
    :param saved: the saved program
    :param new: the new program
    :param factors: the ratios of measured to computed times of evaluations
    """
    evaluated = _plan_evaluations(bootstrap, saved, new.program, new.wiring)
    expected = {
        name: replace(view, seconds=round(view.seconds * factors.least, 3), seconds_at_most=round(view.seconds * factors.most, 3))
        for name, view in evaluated.items()
    }
    before, after = saved.identity.fingerprints, new.program.fingerprints
    identity, declarations = saved.identity, new.front_end.declarations(new.source)
    return PlannedChange(
        bootstrap,
        ProgramChange(saved=ProgramVersion.of(identity.source, identity.version), new=ProgramVersion.of(new.source, new.version)),
        ChangePlan(
            relations=dict(_compare_relations(bootstrap.diff, before, saved.declarations(), after, declarations)),
            evaluated=expected,
            dropped=_count_dropped(bootstrap, saved),
            refusals=tuple(Refusal(problem.code.value, problem.message) for problem in bootstrap.refusals),
            operators=bootstrap.streams.operators,
            files=file_changes(identity.source, new.source),
        ),
        sum(view.seconds for view in evaluated.values()),
    )


def _compare_relations(
    diff: PipelineDiff, before: Fingerprints, old_texts: Mapping[str, str], after: Fingerprints, new_texts: Mapping[str, str]
) -> Iterator[tuple[str, RelationChange]]:
    """Yield the relations whose declarations differ, by name."""
    for name, (kind, change) in sorted(_changes(diff, before, after).items()):
        tables = kind is RelationKind.TABLE
        yield (
            name,
            RelationChange(
                kind,
                change,
                _make_declaration(name, before.tables if tables else before.views, old_texts),
                _make_declaration(name, after.tables if tables else after.views, new_texts),
            ),
        )


def _changes(diff: PipelineDiff, before: Fingerprints, after: Fingerprints) -> dict[str, tuple[RelationKind, RelationChangeKind]]:
    changes = diff.program_diff or ProgramDiff()
    change_kinds = {
        (before if change is RelationChangeKind.REMOVED else after).owners[connector]: RelationChangeKind.CONNECTORS
        for change, connectors in (
            (RelationChangeKind.ADDED, (*diff.added_input_connectors, *diff.added_output_connectors)),
            (RelationChangeKind.MODIFIED, (*diff.modified_input_connectors, *diff.modified_output_connectors)),
            (RelationChangeKind.REMOVED, (*diff.removed_input_connectors, *diff.removed_output_connectors)),
        )
        for connector in connectors
    }
    change_kinds |= dict.fromkeys((*changes.added_tables, *changes.added_views), RelationChangeKind.ADDED)
    change_kinds |= dict.fromkeys((*changes.removed_tables, *changes.removed_views), RelationChangeKind.REMOVED)
    change_kinds |= dict.fromkeys((*changes.modified_tables, *changes.modified_views), RelationChangeKind.MODIFIED)
    tables = {*before.tables, *after.tables}
    kinds = {name: RelationKind.TABLE if name in tables else RelationKind.VIEW for name in change_kinds}
    return {name: (kinds[name], change) for name, change in change_kinds.items() if not is_hidden(name)}


def _make_declaration(name: str, hashes: Mapping[str, str], texts: Mapping[str, str]) -> Declaration | None:
    return Declaration(texts.get(name, ""), hashes[name]) if name in hashes else None


def _plan_evaluations(bootstrap: BootstrapPlan, saved: SavedProgram, new: Program, wiring: Wiring) -> dict[str, ViewEvaluation]:
    """Return the views to evaluate from scratch, unchanged ones included, with the seconds computed from rows and stages alone."""
    rows = saved.holdings.contents
    views = {*bootstrap.evaluated, *bootstrap.outdated}
    fresh = {stage.relation for stage in wiring.stages if wiring.owners[stage.relation] in views}
    names = bootstrap.renamed_relations
    held = {names.get(name, name) for name in rows if name in names or owner(name, bootstrap.kept) in bootstrap.kept}
    needed = needed_for(fresh, wiring.stages, new.tables, held)
    old_names = {new_name: old for old, new_name in names.items()}
    evaluations: dict[str, ViewEvaluation] = {}
    for stage in wiring.stages:
        if stage.relation in needed:
            view = wiring.owners[stage.relation]
            read = {name: rows.get(old_names.get(name, name), 0) for name in stage.reads if name in held}
            seconds = STAGE_S + sum(read.values()) / ROWS_PER_S
            known = evaluations.get(view, ViewEvaluation())
            reads = {**known.reads, **{wiring.owners.get(name, name): count for name, count in read.items()}}
            evaluations[view] = ViewEvaluation(dict(sorted(reads.items())), known.stages + 1, round(known.seconds + seconds, 3))
    return evaluations


def _count_dropped(bootstrap: BootstrapPlan, saved: SavedProgram) -> dict[str, int]:
    """Return the number of storage entries that are dropped, by relation: contents and states of removed and changed relations."""
    identity = saved.identity.fingerprints
    relations = {*identity.tables, *identity.views, SYSTEM_VIEW}
    dropped: dict[str, int] = {}
    for part in (saved.holdings.contents, saved.holdings.states):
        for name, rows in part.items():
            relation = owner(name, relations)
            if name not in bootstrap.renamed_relations and relation not in bootstrap.kept:
                dropped[relation] = dropped.get(relation, 0) + rows
    return dict(sorted(dropped.items()))
