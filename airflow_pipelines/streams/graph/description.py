"""What a program consists of, as those see it who do not run it: operators, and where elements come from and go to."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass, field
from typing import Any

from airflow_pipelines.streams.graph.chains import Chain, Plan, Step
from airflow_pipelines.streams.graph.fingerprints import OwnCode, fingerprint
from airflow_pipelines.streams.graph.kept_states import kept_states
from airflow_pipelines.streams.graph.nodes import Edge
from airflow_pipelines.streams.operators.base import OperatorSpec, TaskSettings
from airflow_pipelines.streams.operators.sink import Write
from airflow_pipelines.streams.operators.source import Read
from airflow_pipelines.streams.relations import RelationSink, RelationSource
from airflow_pipelines.streams.restarts import RestartPolicy
from airflow_pipelines.streams.sources import Source
from airflow_pipelines.streams.state.description import StateDescription

_WORD = re.compile(r"[A-Z][a-z]*")


@dataclass(frozen=True)
class OperatorDescription:
    """An operator.

    :param uid: names its state
    :param name: for people
    :param kind: what it does, in one or two words
    :param fingerprint: of its functions and parameters
    :param inputs: uids of the operators that it reads
    :param is_keyed: whether it keeps state by key
    :param key_type: the declared type of its keys as text; empty without one
    :param max_parallelism: number of key groups
    :param states: what it keeps by key; None when that is not known before it runs
    """

    uid: str
    name: str
    kind: str
    fingerprint: str
    inputs: tuple[str, ...]
    is_keyed: bool
    key_type: str
    max_parallelism: int
    states: tuple[StateDescription, ...] | None


@dataclass(frozen=True)
class SourceDescription:
    """A source that is no relation.

    :param uid: of its operator
    :param name: for people
    :param kind: what makes its positions
    :param is_bounded: whether it ends by itself
    """

    uid: str
    name: str
    kind: str
    is_bounded: bool


@dataclass(frozen=True)
class RelationInputDescription:
    """A relation that is read.

    :param uid: of its operator
    :param relation: its name
    :param with_changes: whether removed rows are elements as well
    """

    uid: str
    relation: str
    with_changes: bool


@dataclass(frozen=True)
class RelationOutputDescription:
    """A relation that is made.

    :param uid: of its operator
    :param relation: its name
    :param columns: names and SQL types
    :param primary_key: the columns by which a later row replaces an earlier one
    """

    uid: str
    relation: str
    columns: tuple[tuple[str, str], ...]
    primary_key: tuple[str, ...] | None


@dataclass(frozen=True)
class RunDescription:
    """What a program sets for its run.

    :param restarts: what follows a failure; None for the end
    :param checkpoint_interval_ms: ms between checkpoints; None when the program does not say
    """

    restarts: RestartPolicy | None = None
    checkpoint_interval_ms: int | None = None


@dataclass(frozen=True)
class ProgramDescription:
    """What a program consists of.

    :param name: of the program
    :param operators: each after what it reads
    :param sources: those that are no relations
    :param inputs: relations that are read
    :param outputs: relations that are made
    :param execution_plan: JSON for people
    :param dependencies: what the processes of the program need of Python
    :param run: what it sets for its run
    """

    name: str
    operators: tuple[OperatorDescription, ...]
    sources: tuple[SourceDescription, ...]
    inputs: tuple[RelationInputDescription, ...]
    outputs: tuple[RelationOutputDescription, ...]
    execution_plan: str
    dependencies: dict[str, Any] = field(default_factory=dict)
    run: RunDescription = field(default_factory=RunDescription)

    def to_json(self) -> dict[str, Any]:
        """The description as what JSON has."""
        return asdict(self)


def describe(
    name: str,
    plan: Plan,
    settings: TaskSettings,
    own: OwnCode,
    execution_plan: str,
    dependencies: dict[str, Any],
    run: RunDescription,
) -> ProgramDescription:
    """Describe a program. The functions of operators with keys are opened once, see :mod:`kept_states`.

    :param name: of the program
    :param plan: what would run
    :param settings: what holds for all operators
    :param own: which code is the program's own
    :param execution_plan: JSON for people
    :param dependencies: what the processes of the program need of Python
    :param run: what it sets for its run
    :returns: the description
    """
    steps = [(chain, step) for chain in plan.chains for step in chain.steps]
    uids = {step.node.id: step.uid for _, step in steps}
    sources = [(step, step.node.operator.source) for _, step in steps if isinstance(step.node.operator, Read)]
    sinks = [(step.uid, step.node.operator.sink) for _, step in steps if isinstance(step.node.operator, Write)]
    return ProgramDescription(
        name,
        operators=tuple(_operator(plan, chain, step, uids, settings, own) for chain, step in steps),
        sources=tuple(_source(step, source) for step, source in sources if not isinstance(source, RelationSource)),
        inputs=tuple(
            RelationInputDescription(step.uid, source.relation, source.with_changes)
            for step, source in sources
            if isinstance(source, RelationSource)
        ),
        outputs=tuple(
            RelationOutputDescription(uid, sink.relation, sink.columns, sink.primary_key)
            for uid, sink in sinks
            if isinstance(sink, RelationSink)
        ),
        execution_plan=execution_plan,
        dependencies=dependencies,
        run=run,
    )


def _operator(
    plan: Plan, chain: Chain, step: Step, uids: dict[int, str], settings: TaskSettings, own: OwnCode
) -> OperatorDescription:
    edges = _inputs(plan, chain, step)
    spec = step.node.operator
    return OperatorDescription(
        step.uid,
        step.name,
        kind_of(spec),
        _fingerprint(step, edges, own),
        inputs=tuple(dict.fromkeys(uids[edge.source] for edge in edges)),
        is_keyed=spec.is_keyed,
        key_type=next((edge.exchange.key_type for edge in edges if edge.exchange.key_type), "") if spec.is_keyed else "",
        max_parallelism=chain.max_parallelism,
        states=kept_states(chain, step, settings),
    )


def _inputs(plan: Plan, chain: Chain, step: Step) -> list[Edge]:
    return [link.edge for link in plan.into(chain)] if step is chain.head else list(step.inputs)


def kind_of(spec: OperatorSpec) -> str:
    """What an operator does.

    :param spec: the operator
    :returns: one or two words
    """
    return spec.kind if spec.kind != OperatorSpec.kind else " ".join(_WORD.findall(type(spec).__name__))


def _fingerprint(step: Step, edges: list[Edge], own: OwnCode) -> str:
    node = step.node
    # A declared type coerces results; how it does so is not the program's affair.
    types = (str(node.output_type) if node.convert else "", sorted(node.side_converts))
    return fingerprint(
        (node.operator, types, [(edge.exchange.selector, edge.exchange.partitioner, edge.port) for edge in edges]), own
    )


def _source(step: Step, source: Source) -> SourceDescription:
    return SourceDescription(step.uid, step.name, source.position_kind, source.is_bounded)
