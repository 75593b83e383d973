"""Finds what of a saved snapshot a program cannot go on with, because it has another layout or is missing."""

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
    """What to do about a snapshot that is not as a circuit would have made it.

    :param views: the views to evaluate anew, each with the reason
    :param tables: the tables that have other columns, so that nothing can be done
    :param lost: views with a table from which they would have to be evaluated, but whose rows were not kept
    :param timed: views that cannot be evaluated anew, because their contents depend on late rows and waterlines
    """

    views: Mapping[str, str] = field(default_factory=dict)
    tables: tuple[str, ...] = ()
    lost: tuple[tuple[str, str], ...] = ()
    timed: tuple[str, ...] = ()


def outdated(program: Program, wiring: Wiring, holdings: Holdings, kept: Set[str]) -> Outdated:
    """What of a saved snapshot a program cannot go on with.

    :param program: the program as this release runs it
    :param wiring: that of its circuit
    :param holdings: what the snapshot has
    :param kept: the relations that have not changed with the program; of others nothing is used anyway
    """
    if holdings.is_initial:
        # Nothing is missing where there was nothing yet.
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
    lost, timed = _unreachable(program, wiring, needed, kept - holdings.contents.keys())
    return Outdated(
        {owner(name, views): reason for name, reason in sorted(stale.items(), reverse=True)},
        tuple(sorted(name for name in holdings.contents if name in tables and name in kept and name not in same)),
        tuple(sorted(lost)),
        tuple(sorted(timed)),
    )


def is_held(operator: Operator[Any], kept: Set[str], holdings: Holdings, same: Set[str]) -> bool:
    """Whether a snapshot has all that an operator keeps, in its layout.

    :param operator: the operator
    :param kept: the relations whose contents its circuit keeps
    :param holdings: what the snapshot has
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


def _unreachable(program: Program, wiring: Wiring, needed: Set[str], absent: Set[str]) -> tuple[set[tuple[str, str]], set[str]]:
    """Of views that are ``needed``: those with tables that are ``absent``, and those that time has passed over."""
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
