"""Description of a program for readers that do not run it: its operators, sources and sinks."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from airflow_pipelines.program.streams import (
    RelationInput,
    RelationOutput,
    StreamOperator,
    StreamProgram,
    StreamRestarts,
    StreamRun,
    StreamSource,
    StreamState,
)
from airflow_pipelines.streams.graph.chains import Chain, Plan, Step
from airflow_pipelines.streams.graph.fingerprints import OwnCode, fingerprint
from airflow_pipelines.streams.graph.kept_states import kept_states
from airflow_pipelines.streams.graph.nodes import Edge
from airflow_pipelines.streams.operators.base import OperatorSpec, TaskSettings
from airflow_pipelines.streams.operators.sink import Write
from airflow_pipelines.streams.operators.source import Read
from airflow_pipelines.streams.python_environment.needs import PythonNeeds
from airflow_pipelines.streams.relations import RelationSink, RelationSource
from airflow_pipelines.streams.restarts import RestartPolicy
from airflow_pipelines.streams.sinks import Sink
from airflow_pipelines.streams.sources import CollectionSource, Source
from airflow_pipelines.streams.worker.bound import bind

_WORD = re.compile(r"[A-Z][a-z]*")


@dataclass(frozen=True)
class Execution:
    """The execution that a program asks for.

    :param name: the name of the run; empty if the program gives none
    :param plan: the plan to run
    :param settings: the settings of all operators
    :param execution_plan: the operators as JSON, for people
    :param needs: the Python environment that the processes of the program need
    :param run: the settings of the run
    """

    name: str
    plan: Plan
    settings: TaskSettings
    execution_plan: str
    needs: PythonNeeds
    run: StreamRun


def describe(execution: Execution, files: Path) -> StreamProgram:
    """Describe a program. The functions of operators with keys are opened once, see :mod:`kept_states`.

    :param execution: the execution that the program asks for
    :param files: the folder of its files
    :returns: the description, with the plan as bytes
    """
    plan, settings, needs = execution.plan, execution.settings, execution.needs
    steps = [(chain, step) for chain in plan.chains for step in chain.steps]
    uids = {step.node.id: step.uid for _, step in steps}
    sources = [(step, step.node.operator.source) for _, step in steps if isinstance(step.node.operator, Read)]
    sinks = [(step.uid, step.node.operator.sink) for _, step in steps if isinstance(step.node.operator, Write)]
    own = OwnCode((files, *needs.files))
    return StreamProgram(
        execution.name,
        operators=tuple(_operator(plan, chain, step, uids, settings, own) for chain, step in steps),
        sources=tuple(_source(step, source) for step, source in sources if not isinstance(source, RelationSource)),
        inputs=tuple(
            RelationInput(step.uid, source.relation, source.with_changes, source.stays_open)
            for step, source in sources
            if isinstance(source, RelationSource)
        ),
        outputs=tuple(
            RelationOutput(uid, sink.relation, sink.columns, sink.primary_key)
            for uid, sink in sinks
            if isinstance(sink, RelationSink)
        ),
        execution_plan=execution.execution_plan,
        dependencies=needs.to_json(files),
        run=execution.run,
        references=_references([source for _, source in sources], [sink for _, sink in sinks]),
        plan=bind(plan, settings, str(files)).to_bytes(),
    )


def _references(sources: Sequence[Source], sinks: Sequence[Sink]) -> tuple[str, ...]:
    named = [*(source.references() for source in sources), *(sink.references() for sink in sinks)]
    return tuple(sorted({reference for references in named for reference in references}))


def describe_run(restarts: RestartPolicy | None, checkpoint_interval_ms: int | None) -> StreamRun:
    """Describe the settings of a run that a program makes.

    :param restarts: the restart policy after a failure; None if a failure ends the program
    :param checkpoint_interval_ms: ms between checkpoints; None if the program does not set it
    :returns: the description
    """
    if restarts is None:
        return StreamRun(None, checkpoint_interval_ms)
    return StreamRun(StreamRestarts(restarts.attempts, restarts.delay_ms, restarts.interval_ms), checkpoint_interval_ms)


def _operator(plan: Plan, chain: Chain, step: Step, uids: dict[int, str], settings: TaskSettings, own: OwnCode) -> StreamOperator:
    edges = _inputs(plan, chain, step)
    spec = step.node.operator
    states = kept_states(chain, step, settings)
    return StreamOperator(
        step.uid,
        step.name,
        _kind_of(spec),
        _compute_fingerprint(step, edges, own),
        inputs=tuple(dict.fromkeys(uids[edge.source] for edge in edges)),
        is_keyed=spec.is_keyed,
        key_type=next((edge.exchange.key_type for edge in edges if edge.exchange.key_type), "") if spec.is_keyed else "",
        max_parallelism=chain.max_parallelism,
        states=None if states is None else tuple(StreamState(each.name, each.kind, each.type, each.ttl) for each in states),
        position_kind=spec.source.position_kind if isinstance(spec, Read) else "",
        places=_places(spec.source, own) if isinstance(spec, Read) else (),
    )


def _places(source: Source, own: OwnCode) -> tuple[str, ...]:
    if isinstance(source, CollectionSource):
        return (f"a collection of {len(source.values)} elements ({fingerprint(source.values, own)[:8]})",)
    return tuple(source.places)


def _inputs(plan: Plan, chain: Chain, step: Step) -> list[Edge]:
    return [link.edge for link in plan.into(chain)] if step is chain.head else list(step.inputs)


def _kind_of(spec: OperatorSpec) -> str:
    """Return the kind of an operator, in one or two words."""
    return spec.kind if spec.kind != OperatorSpec.kind else " ".join(_WORD.findall(type(spec).__name__))


def _compute_fingerprint(step: Step, edges: list[Edge], own: OwnCode) -> str:
    node = step.node
    # A declared type coerces results, but the implementation of the coercion is not part of the program.
    types = (str(node.output_type) if node.convert else "", sorted(node.side_converts))
    return fingerprint(
        (node.operator, types, [(edge.exchange.selector, edge.exchange.partitioner, edge.port) for edge in edges]), own
    )


def _source(step: Step, source: Source) -> StreamSource:
    return StreamSource(step.uid, step.name, source.position_kind, source.is_bounded)
