"""The stages of a circuit, and the relations and states that it keeps between steps."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Any

from airflow_pipelines.engine.operators.operator import Operator
from airflow_pipelines.engine.program import Program
from airflow_pipelines.engine.snapshot import Snapshot
from airflow_pipelines.engine.trace import Trace
from airflow_pipelines.program.relations import ViewKind
from airflow_pipelines.sql.plan.ir.stage import Stage

STRATEGIES = ("auto", "incremental", "full")


def stages_of(program: Program, strategy: str) -> tuple[Stage, ...]:
    """Return the stages of all views, each after its inputs.

    :param strategy: ``auto`` or ``incremental`` use incremental rules where there are any, ``full`` recomputes every view
    :raises ValueError: for an unknown strategy
    """
    if strategy not in STRATEGIES:
        raise ValueError(f"strategy {strategy!r} is none of {', '.join(STRATEGIES)}")
    stages: list[Stage] = []
    for name in program.views:
        plan = program.plans[name]
        stages += (plan.full, *plan.after) if strategy == "full" else (*plan.stages, *plan.after)
    return tuple(stages)


def kept_relations(program: Program, operators: Iterable[Operator[Any]]) -> frozenset[str]:
    """Return the relations whose contents are kept.

    The rows of a table are not needed if the table cannot be queried, is append-only and is not read again by an operator.
    """
    kept = {table.name for table in program.tables.values() if table.materialized or table.primary_key or not table.append_only}
    kept |= {name for name, view in program.views.items() if view.kind is ViewKind.MATERIALIZED}
    for operator in operators:
        kept |= operator.rereads
        if operator.keeps_contents:
            kept.add(operator.relation)
    return frozenset(kept)


def ends(program: Program, stages: Iterable[Stage], kept: Set[str]) -> frozenset[str]:
    """Return the views whose deltas nothing in the circuit needs.

    :param kept: the relations that are needed for other reasons than being read
    """
    read = frozenset().union(*(stage.reads for stage in stages))
    return frozenset(program.views) - kept - read


def lacks(operator: Operator[Any], kept: Set[str], snapshot: Snapshot) -> bool:
    """Return True if the snapshot lacks something that the operator keeps.

    :param operator: the operator
    :param kept: the relations whose traces are kept
    :param snapshot: the snapshot
    """
    if operator.states and operator.relation not in snapshot.states:
        return True
    return operator.relation in kept and operator.relation not in snapshot.traces


def restored_states(operator: Operator[Any], saved: Mapping[str, Trace]) -> Mapping[str, Trace]:
    """Return an operator's states from a snapshot in which they have their current layout.

    The only state of an operator has no name in what is stored.
    """
    if len(operator.states) == 1 and len(saved) == 1:
        return dict(zip(operator.states, saved.values(), strict=True))
    return saved


def needed_for(fresh: Set[str], stages: Sequence[Stage], tables: Mapping[str, object], held: Set[str]) -> set[str]:
    """Return the stages that have to be evaluated for ``fresh`` ones, including the inputs whose contents are not at hand.

    :param fresh: the relations to evaluate
    :param stages: all stages in the order of evaluation
    :param tables: the program's tables, which are never evaluated
    :param held: the relations whose contents are at hand
    """
    needed = set(fresh)
    for stage in reversed(stages):
        if stage.relation in needed:
            needed |= {name for name in stage.reads if name not in tables and name not in held}
    return needed
