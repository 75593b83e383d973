"""Views that have another name in a new program and are the same otherwise: what was saved of them is used under the new name."""

from __future__ import annotations

import json
from collections.abc import Mapping, Set

from airflow_pipelines.engine.outdated import is_held
from airflow_pipelines.engine.snapshot import INTERNAL, Holdings
from airflow_pipelines.engine.wiring import Wiring
from airflow_pipelines.sql.plan.ir.description import described
from airflow_pipelines.sql.plan.ir.stage import Stage


def renamed_relations(
    old: Wiring, before: str, new: Wiring, after: str, holdings: Holdings, kept: Set[str]
) -> Mapping[str, str] | None:
    """The relations of a renamed view, the view and what its plan made for itself, whose contents and states can be used.

    :param old: the saved program, as this release runs it
    :param before: the view's name there
    :param new: the new program
    :param after: its name there
    :param holdings: what was saved. Where that is nothing, the contents are empty, or steps of the old program lead to them
    :param kept: the relations that have not changed with the program
    :returns: the new name of each relation by its old one; None when the view is planned in another way, or something was not saved
    """
    old_stages, new_stages = _stages_of(old, before), _stages_of(new, after)
    if len(old_stages) != len(new_stages):
        return None
    same = {name for name, layout in holdings.layouts.items() if old.layouts.get(name) == layout}
    operators = {operator.relation: operator for operator in old.operators}
    names: dict[str, str] = {}
    for old_stage, new_stage in zip(old_stages, new_stages, strict=True):
        names[old_stage.relation] = new_stage.relation
        others = old_stage.reads - {stage.relation for stage in old_stages}
        if not others <= kept or any(old.layouts[name] != new.layouts[name] for name in others):
            return None
        if _text(old_stage).replace(f"{before}{INTERNAL}", f"{after}{INTERNAL}") != _text(new_stage):
            return None
        wanted = old.kept | ({old_stage.relation} if new_stage.relation in new.kept else set())
        if not holdings.is_initial and not is_held(operators[old_stage.relation], wanted, holdings, same):
            return None
    return names


def _stages_of(wiring: Wiring, view: str) -> list[Stage]:
    return [stage for stage in wiring.stages if wiring.owners[stage.relation] == view]


def _text(stage: Stage) -> str:
    return json.dumps({"columns": stage.columns, "node": described(stage.node)})
