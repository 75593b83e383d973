"""The retention rules of a program: the state that LATENESS allows to evict."""

from __future__ import annotations

from dataclasses import replace

from airflow_pipelines.engine.program import Program
from airflow_pipelines.sql.plan.properties.retention import retention_rules
from airflow_pipelines.sql.plan.properties.waterlines import WaterlineAnalysis


def with_retention(program: Program, analysis: WaterlineAnalysis) -> Program:
    """Return a program with rules for the rows and groups that its stages need not keep.

    :param program: a program without retention rules
    :param analysis: the waterlines of all its relations
    """
    if not program.late_columns:
        return program
    stages = [stage for name in program.views for stage in (*program.plans[name].stages, *program.plans[name].after)]
    computed = {stage.relation for stage in stages}
    late: dict[str, list[str]] = {}
    for column in program.late_columns:
        if column.relation not in computed:
            late.setdefault(column.relation, []).append(column.column)
    markers = {marker.relation: marker for marker in program.markers}
    return replace(program, retention=retention_rules(stages, analysis, late, program.shown_relations, markers))
