"""The cost of a pipeline's steps, operator by operator, and the physical plans of its queries in Spark."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from airflow_pipelines.engine.circuit import Circuit
from airflow_pipelines.engine.step_stats import StepStats


@dataclass(slots=True)
class OperatorProfile:
    """The work of one operator in the newest steps.

    :param relation: the view, or the internal relation of a view, that it computes
    :param view: the view that the relation belongs to
    :param strategy: the strategy by which the plan evaluates it
    :param reads: the relations whose changes it reads
    :param kept_rows: the number of rows of the relation that are kept, or None if its contents are not kept
    :param steps: the number of steps in which it had something to do
    :param rows_in: the number of rows in the changes that it read in these steps
    :param rows_out: the number of rows in the changes that it produced
    :param duration_ms: its total time in these steps
    :param longest_ms: its time in the longest of these steps
    :param reason: the reason why it computes the relation anew, if it does
    """

    relation: str
    view: str
    strategy: str
    reads: tuple[str, ...]
    kept_rows: int | None
    steps: int = 0
    rows_in: int = 0
    rows_out: int = 0
    duration_ms: float = 0.0
    longest_ms: float = 0.0
    reason: dict[str, Any] | None = None


def circuit_profile(circuit: Circuit, recent: Iterable[StepStats]) -> dict[str, Any]:
    """Return the profile of a running pipeline.

    :param circuit: the pipeline's circuit
    :param recent: its newest steps
    :returns: a JSON object: the steps, their sums for each operator and for each view, and the physical plans of the queries that
        are planned once and run again in each step
    """
    steps = list(recent)
    operators = _operators(circuit, steps)
    views: dict[str, float] = {}
    for operator in operators:
        views[operator.view] = views.get(operator.view, 0.0) + operator.duration_ms
    return {
        "steps": len(steps),
        "duration_ms": sum(step.duration_ms for step in steps),
        "input_rows": sum(step.input_rows for step in steps),
        "views": [{"view": view, "duration_ms": duration} for view, duration in views.items()],
        "operators": [asdict(operator) for operator in operators],
        "plans": [{"query": plan.query, "physical_plan": plan.physical_plan} for plan in circuit.batch_views.plans()],
        "recent_steps": [step.to_wire() for step in steps],
    }


def zip_profile(profile: dict[str, Any], dataflow: dict[str, Any]) -> bytes:
    """Return a profile as a ZIP file: the profile and the dataflow graph as JSON, and each physical plan as text.

    :param profile: the result of :func:`circuit_profile`
    :param dataflow: the graph of the same program
    """
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("profile.json", json.dumps(profile, indent=1))
        file.writestr("dataflow.json", json.dumps(dataflow, indent=1))
        for number, plan in enumerate(profile["plans"]):
            file.writestr(f"plans/{number:03}.txt", f"{plan['query']}\n\n{plan['physical_plan']}")
    return content.getvalue()


def _operators(circuit: Circuit, steps: Iterable[StepStats]) -> list[OperatorProfile]:
    traces, owners = circuit.snapshot.traces, circuit.wiring.owners
    profiles = {
        stage.relation: OperatorProfile(
            stage.relation,
            owners[stage.relation],
            stage.strategy,
            tuple(sorted(stage.reads)),
            traces[stage.relation].rows if stage.relation in traces else None,
            reason=None if stage.reason is None else stage.reason.to_wire(),
        )
        for stage in circuit.stages
    }
    for step in steps:
        for stats in step.operators:
            profile = profiles[stats.relation]
            profile.steps += 1
            profile.rows_in += stats.rows_in
            profile.rows_out += stats.rows_out
            profile.duration_ms += stats.duration_ms
            profile.longest_ms = max(profile.longest_ms, stats.duration_ms)
    return list(profiles.values())
