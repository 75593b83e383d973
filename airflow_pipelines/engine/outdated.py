"""Finds what of a saved snapshot a circuit cannot use, because it has another layout or is missing."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass, field
from typing import Any

from airflow_pipelines.engine.circuit import Circuit
from airflow_pipelines.engine.operators.operator import Operator
from airflow_pipelines.engine.snapshot import owner, saved_layouts
from airflow_pipelines.engine.stages import needed_for


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


def outdated(circuit: Circuit, manifest: Mapping[str, Any], kept: Set[str]) -> Outdated:
    """What of a saved snapshot a circuit cannot use.

    :param circuit: the program as this release runs it
    :param manifest: the snapshot's
    :param kept: the relations that have not changed with the program; of others nothing is used anyway
    """
    if not manifest["traces"] and not manifest["states"]:
        # Nothing was evaluated yet, so that nothing is missing.
        return Outdated()
    tables, views = circuit.program.tables, circuit.program.views.keys()
    layouts = saved_layouts(manifest)
    same = {name for name, layout in layouts.items() if circuit.layouts.get(name) == layout}
    stale = {
        operator.relation: _reason(operator.relation, manifest)
        for operator in circuit.operators
        if owner(operator.relation, views) in kept and not _is_there(operator, circuit.kept, manifest, same)
    }
    held = manifest["traces"].keys() & same
    lost, timed = _unreachable(circuit, needed_for(stale.keys(), circuit.stages, tables, held), kept - manifest["traces"].keys())
    return Outdated(
        {owner(name, views): reason for name, reason in sorted(stale.items(), reverse=True)},
        tuple(sorted(name for name in manifest["traces"] if name in tables and name in kept and name not in same)),
        tuple(sorted(lost)),
        tuple(sorted(timed)),
    )


def _is_there(operator: Operator[Any], kept: Set[str], manifest: Mapping[str, Any], same: Set[str]) -> bool:
    """Whether a snapshot has all that an operator keeps, in its layout.

    :param same: the relations whose layout is right
    """
    name = operator.relation
    if not operator.states and name not in kept:
        return True
    return name in same and (name in manifest["states"] or not operator.states) and (name in manifest["traces"] or name not in kept)


def _reason(name: str, manifest: Mapping[str, Any]) -> str:
    if "layouts" not in manifest:
        return "it was saved without a layout"
    if name not in manifest["layouts"]:
        return f"nothing was saved of {name}"
    return f"{name} was saved in another layout"


def _unreachable(circuit: Circuit, needed: Set[str], absent: Set[str]) -> tuple[set[tuple[str, str]], set[str]]:
    """Of views that are ``needed``: those with tables that are ``absent``, and those that time has passed over."""
    late = {column.relation for column in circuit.program.late_columns}
    incomplete = circuit.timing.retention.relations
    lost, timed = set(), set()
    for stage in circuit.stages:
        if stage.relation in needed:
            view = owner(stage.relation, circuit.program.views.keys())
            lost |= {(view, name) for name in stage.reads & absent if name in circuit.program.tables}
            if view in late or stage.reads & incomplete:
                timed.add(view)
    return lost, timed
