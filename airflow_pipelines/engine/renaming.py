"""Views that a new program renames but does not change otherwise: their saved contents are used under the new name."""

from __future__ import annotations

import json
from collections.abc import Mapping, Set

from airflow_pipelines.engine.outdated import is_held
from airflow_pipelines.engine.snapshot import INTERNAL, Holdings
from airflow_pipelines.engine.wiring import Wiring
from airflow_pipelines.sql.plan.ir.description import describe_node
from airflow_pipelines.sql.plan.ir.stage import Stage


def renamed_relations(
    old: Wiring, before: str, new: Wiring, after: str, holdings: Holdings, kept: Set[str]
) -> Mapping[str, str] | None:
    """Return the relations of a renamed view whose contents and states can be used: the view and the internal ones of its plan.

    :param old: the saved program, as this release runs it
    :param before: the view's name in the saved program
    :param new: the new program
    :param after: the view's name in the new program
    :param holdings: the saved contents, without the rows. If nothing was saved, the contents are empty, or are rebuilt by steps of
        the old program
    :param kept: the relations that have not changed with the program
    :returns: the new name of each relation by its old one; None if the view is planned in another way, or something was not saved
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
    return json.dumps({"columns": stage.columns, "node": describe_node(stage.node)})
