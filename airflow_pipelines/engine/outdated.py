"""The check for parts of a saved snapshot that a program cannot use, because they have another layout or are missing."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass, field
from typing import Any

from airflow_pipelines.engine.operators.operator import Operator
from airflow_pipelines.engine.program import Program
from airflow_pipelines.engine.snapshot import Holdings, owner
from airflow_pipelines.engine.stages import needed_for
from airflow_pipelines.engine.wiring import Wiring


@dataclass(frozen=True, slots=True)
class Outdated:
    """The parts of a saved snapshot that a circuit cannot use as they are, and the consequences.

    :param views: the views to evaluate anew, each with the reason
    :param tables: the tables that have other columns, for which there is no remedy
    :param lost: pairs of a view to evaluate anew and a table that it reads but whose rows were not kept
    :param timed: the views that cannot be evaluated anew, because their contents depend on late rows and waterlines
    """

    views: Mapping[str, str] = field(default_factory=dict)
    tables: tuple[str, ...] = ()
    lost: tuple[tuple[str, str], ...] = ()
    timed: tuple[str, ...] = ()


def find_outdated(program: Program, wiring: Wiring, holdings: Holdings, kept: Set[str]) -> Outdated:
    """Find the parts of a saved snapshot that a program cannot use.

    :param program: the program as this release runs it
    :param wiring: the wiring of its circuit
    :param holdings: the contents of the snapshot, without the rows
    :param kept: the relations that have not changed with the program; nothing of the others is used anyway
    """
    if holdings.is_initial:
        # A snapshot before the first step lacks nothing.
        return Outdated()
    tables, views = program.tables, program.views.keys()
    same = {name for name, layout in holdings.layouts.items() if wiring.layouts.get(name) == layout}
    stale = {
        operator.relation: _reason(operator.relation, holdings)
        for operator in wiring.operators
        if owner(operator.relation, views) in kept and not is_held(operator, wiring.kept, holdings, same)
    }
    held = holdings.contents.keys() & same
    needed = needed_for(stale.keys(), wiring.stages, tables, held)
    lost, timed = _find_unreachable(program, wiring, needed, kept - holdings.contents.keys())
    return Outdated(
        {owner(name, views): reason for name, reason in sorted(stale.items(), reverse=True)},
        tuple(sorted(name for name in holdings.contents if name in tables and name in kept and name not in same)),
        tuple(sorted(lost)),
        tuple(sorted(timed)),
    )


def is_held(operator: Operator[Any], kept: Set[str], holdings: Holdings, same: Set[str]) -> bool:
    """Return True if a snapshot has all that an operator keeps, in its layout.

    :param operator: the operator
    :param kept: the relations whose contents its circuit keeps
    :param holdings: the contents of the snapshot, without the rows
    :param same: the relations whose layout is right
    """
    name = operator.relation
    if not operator.states and name not in kept:
        return True
    return name in same and (name in holdings.states or not operator.states) and (name in holdings.contents or name not in kept)


def _reason(name: str, holdings: Holdings) -> str:
    if holdings.noted is None:
        return "it was saved without a layout"
    if name not in holdings.noted:
        return f"nothing was saved of {name}"
    return f"{name} was saved in another layout"


def _find_unreachable(
    program: Program, wiring: Wiring, needed: Set[str], absent: Set[str]
) -> tuple[set[tuple[str, str]], set[str]]:
    """Return the tables in ``absent`` that ``needed`` views read, each with its view, and the ``needed`` views that depend on time.

    Views depend on time if they have LATENESS, or read relations of which old rows are dropped.
    """
    late = {column.relation for column in program.late_columns}
    incomplete = {rule.relation for rule in program.retention if not rule.of_state}
    lost, timed = set(), set()
    for stage in wiring.stages:
        if stage.relation in needed:
            view = owner(stage.relation, program.views.keys())
            lost |= {(view, name) for name in stage.reads & absent if name in program.tables}
            if view in late or stage.reads & incomplete:
                timed.add(view)
    return lost, timed
