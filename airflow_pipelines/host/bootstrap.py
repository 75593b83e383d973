"""Deciding how a program goes on from the state of an earlier one: the difference, its refusals, and what is kept."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass, field

from airflow_pipelines.contract.error_codes import ErrorCode
from airflow_pipelines.contract.problems import Problem
from airflow_pipelines.engine.circuit import Circuit
from airflow_pipelines.engine.front_end import FrontEnd
from airflow_pipelines.engine.outdated import outdated
from airflow_pipelines.engine.program import Program
from airflow_pipelines.host.durability import SavedState
from airflow_pipelines.program.diff import PipelineDiff, ProgramDiff, compare
from airflow_pipelines.program.names import SYSTEM_VIEW


@dataclass(frozen=True, slots=True)
class BootstrapPlan:
    """How to get from the saved program to the new one."""

    diff: PipelineDiff
    kept: frozenset[str]
    """Relations whose contents and state stay."""
    evaluated: frozenset[str]
    """Views to evaluate from scratch."""
    kept_connectors: frozenset[str]
    """Connectors that go on from their positions."""
    outdated: Mapping[str, str] = field(default_factory=dict)
    """Views that have not changed, but are evaluated anew because of how they were saved; each with the reason."""


def plan_bootstrap(saved: SavedState, circuit: Circuit, new: Program, front_end: FrontEnd) -> BootstrapPlan:
    """Compare the saved program and its state with the new one.

    :param saved: what is there
    :param circuit: the new program's
    :param new: the new program
    :param front_end: that of the saved program
    :raises Problem: ``BootstrapNotAllowed`` when there is no way to go on
    """
    difference = compare(saved.program.fingerprints, new.fingerprints)
    changes = difference.program_diff or ProgramDiff()
    fresh_tables, fresh_views = changes.fresh_tables, changes.fresh_views
    if not changes.is_empty:
        _refuse_lateness(front_end.late_relations(saved.program.source) | new.late_relations)
        _refuse_lost_contents(new, fresh_tables, fresh_views)
    relations = {*new.tables, *new.views}
    fresh_connectors = difference.fresh_connectors
    connectors = {
        connector.endpoint
        for connector in new.connectors
        if connector.endpoint not in fresh_connectors and connector.relation not in fresh_tables
    }
    kept = frozenset((relations | {SYSTEM_VIEW}) - fresh_tables - fresh_views)
    return BootstrapPlan(
        diff=difference,
        kept=kept,
        evaluated=fresh_views,
        kept_connectors=frozenset(connectors),
        outdated=_outdated_views(saved, circuit, kept),
    )


def _outdated_views(saved: SavedState, circuit: Circuit, kept: frozenset[str]) -> Mapping[str, str]:
    """The views to evaluate anew although they have not changed, and why."""
    found = outdated(circuit, {"traces": {}, "states": {}} if saved.base is None else saved.base.contents.snapshot, kept)
    tables = circuit.program.tables.keys() & kept
    # The journal's records have rows of tables, and nothing else.
    other = {name for name, layout in saved.layouts.items() if name in tables and circuit.layouts[name] != layout}
    reasons = [f"table {table} has other columns" for table in sorted({*found.tables, *other})]
    reasons += [f"view {view} would have to be evaluated from table {table}, whose rows are not kept" for view, table in found.lost]
    reasons += [f"view {view} depends on what came late, and cannot be evaluated again" for view in found.timed]
    if reasons:
        raise Problem(
            ErrorCode.BOOTSTRAP_NOT_ALLOWED,
            f"The state was saved by a release that keeps it in another way than this one: {'; '.join(reasons)}. "
            "Go on with the release that saved it, or clear the pipeline's storage to start from scratch.",
        )
    return found.views


def _refuse_lateness(late: frozenset[str]) -> None:
    if late:
        raise Problem(
            ErrorCode.BOOTSTRAP_NOT_ALLOWED,
            f"A pipeline that has relations with lateness cannot be modified without losing state: {', '.join(sorted(late))}. "
            "Clear its storage to start the changed program from scratch.",
        )


def _refuse_lost_contents(program: Program, fresh_tables: Set[str], fresh_views: Set[str]) -> None:
    reads = {
        (view, name)
        for view in fresh_views
        for name in program.views[view].reads
        if name in program.tables and name not in fresh_tables and not program.tables[name].materialized
    }
    if reads:
        listed = ", ".join(f"view {view} reads table {table}" for view, table in sorted(reads))
        raise Problem(
            ErrorCode.BOOTSTRAP_NOT_ALLOWED,
            f"The new or modified views cannot be computed, because tables that they read are not materialized: {listed}. "
            "Declare the tables with 'materialized' = 'true', or clear the pipeline's storage.",
        )
