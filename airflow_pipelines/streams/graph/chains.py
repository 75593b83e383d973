"""Division of a graph at its exchanges into chains. One task runs a chain without handing elements over."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from airflow_pipelines.streams.errors import StreamProgramError
from airflow_pipelines.streams.graph.nodes import DEFAULT_MAX_PARALLELISM, Edge, Exchange, ExchangeKind, Graph, Node
from airflow_pipelines.streams.graph.timestamps import refuse_windows_without_timestamps


@dataclass(frozen=True)
class Defaults:
    """The defaults for nodes that do not specify a value.

    :param parallelism: the number of tasks
    :param max_parallelism: the number of key groups, None for ``DEFAULT_MAX_PARALLELISM``
    :param chaining: True if operators may be chained
    """

    parallelism: int = 1
    max_parallelism: int | None = None
    chaining: bool = True


@dataclass(frozen=True)
class Step:
    """One operator of a chain.

    :param node: the operator
    :param name: the name, for people
    :param uid: the uid, which names its state
    :param inputs: edges from operators of the same chain; none for the head
    :param is_input_bounded: True if all its inputs end by themselves
    """

    node: Node
    name: str
    uid: str
    inputs: tuple[Edge, ...]
    is_input_bounded: bool


@dataclass(frozen=True)
class Link:
    """A connection that brings elements from one chain to another.

    :param edge: the edge, with the output, the exchange and the input
    :param source: the number of the chain that writes
    :param target: the number of the chain that reads
    :param number: the number of the link among those into that chain, from 0
    :param source_name: the name of the operator that writes
    """

    edge: Edge
    source: int
    target: int
    number: int
    source_name: str


@dataclass(frozen=True)
class Chain:
    """Operators that call each other directly.

    :param number: the number of the chain, in an order in which writers come before readers
    :param steps: the operators, the head first
    :param parallelism: the number of tasks
    :param max_parallelism: the number of key groups
    """

    number: int
    steps: tuple[Step, ...]
    parallelism: int
    max_parallelism: int

    @property
    def head(self) -> Step:
        """The operator that gets the elements from other chains."""
        return self.steps[0]

    @property
    def name(self) -> str:
        """The names of its operators."""
        return " -> ".join(step.name for step in self.steps)


@dataclass(frozen=True)
class Plan:
    """A plan for a runner. It is sent by value.

    :param chains: the chains, in an order in which writers come before readers
    :param links: the links between them
    """

    chains: tuple[Chain, ...]
    links: tuple[Link, ...]

    def into(self, chain: Chain) -> list[Link]:
        """Return the links that a chain reads.

        :param chain: the chain
        :returns: its input links in the order of their numbers
        """
        return [link for link in self.links if link.target == chain.number]

    def out_of(self, chain: Chain) -> list[Link]:
        """Return the links that a chain writes.

        :param chain: the chain
        :returns: its output links
        """
        return [link for link in self.links if link.source == chain.number]


def plan_of(graph: Graph, sinks: Sequence[int], defaults: Defaults) -> Plan:
    """Divide a graph into chains.

    :param graph: the program
    :param sinks: the ids of the nodes that shall run, with all nodes that they need
    :param defaults: the defaults for nodes that do not specify a value
    :returns: the plan
    :raises StreamProgramError: if two operators have the same uid, if parallelism and exchanges do not match, or if event-time
        windows would get elements without timestamps
    """
    nodes = graph.upstream_of(list(sinks))
    refuse_windows_without_timestamps(graph, nodes)
    uids = _assign_uids(nodes)
    members: list[list[Step]] = []
    chain_of: dict[int, int] = {}
    links: list[Link] = []
    for node in nodes:
        edges = [_resolve_exchange(graph, edge, node, defaults) for edge in node.inputs]
        bounded = all(source.operator.source.is_bounded for source in graph.sources_of(node))  # type: ignore[attr-defined]
        chained = _is_chained(graph, node, edges, defaults)
        step = Step(node, node.name, uids[node.id], tuple(edges) if chained else (), bounded)
        if chained:
            number = chain_of[edges[0].source]
            members[number].append(step)
        else:
            number = len(members)
            members.append([step])
            links += [
                Link(edge, chain_of[edge.source], number, index, graph.nodes[edge.source].name) for index, edge in enumerate(edges)
            ]
        chain_of[node.id] = number
    chains = tuple(
        Chain(
            number,
            tuple(steps),
            parallelism_of(steps[0].node, defaults),
            _max_parallelism_of([step.node for step in steps], defaults),
        )
        for number, steps in enumerate(members)
    )
    return Plan(chains, tuple(links))


def parallelism_of(node: Node, defaults: Defaults) -> int:
    """Return the number of tasks of a node.

    :param node: the node
    :param defaults: the defaults for nodes that do not specify a value
    :returns: their number
    """
    if node.non_parallel:
        return 1
    return defaults.parallelism if node.parallelism is None else node.parallelism


def _max_parallelism_of(nodes: list[Node], defaults: Defaults) -> int:
    declared = [node.max_parallelism for node in nodes if node.max_parallelism is not None]
    number = declared[0] if declared else (defaults.max_parallelism or DEFAULT_MAX_PARALLELISM)
    parallelism = parallelism_of(nodes[0], defaults)
    if parallelism > number:
        if declared or defaults.max_parallelism:
            raise StreamProgramError(
                f"The operator {nodes[0].name!r} has the parallelism {parallelism}, and its maximum parallelism is {number}."
                " Raise the maximum with set_max_parallelism() or lower the parallelism."
            )
        return parallelism
    return number


def _assign_uids(nodes: list[Node]) -> dict[int, str]:
    given: dict[str, Node] = {}
    uids: dict[int, str] = {}
    counts: dict[str, int] = {}
    for node in nodes:
        if node.uid is not None:
            if node.uid in given:
                raise StreamProgramError(
                    f"The operators {given[node.uid].name!r} and {node.name!r} have the same uid {node.uid!r}. Give each its"
                    f" own: it names the state."
                )
            given[node.uid] = node
            uids[node.id] = node.uid
        else:
            counts[node.name] = counts.get(node.name, 0) + 1
            uids[node.id] = f"{node.name}#{counts[node.name]}"
    return uids


def _resolve_exchange(graph: Graph, edge: Edge, node: Node, defaults: Defaults) -> Edge:
    source = graph.nodes[edge.source]
    same = parallelism_of(source, defaults) == parallelism_of(node, defaults)
    kind = edge.exchange.kind
    if kind is ExchangeKind.DEFAULT:
        return replace(edge, exchange=Exchange(ExchangeKind.FORWARD if same else ExchangeKind.REBALANCE))
    if kind is ExchangeKind.FORWARD and not same:
        raise StreamProgramError(
            f"forward() between {source.name!r} and {node.name!r}: their parallelism is {parallelism_of(source, defaults)} and"
            f" {parallelism_of(node, defaults)}. Make them equal, or use rebalance()."
        )
    return edge


def _is_chained(graph: Graph, node: Node, edges: list[Edge], defaults: Defaults) -> bool:
    if not defaults.chaining or not node.chained_to_input or len(edges) != 1:
        return False
    edge = edges[0]
    if node.operator.is_keyed or not graph.nodes[edge.source].chained_to_outputs:
        return False
    return edge.exchange.kind is ExchangeKind.FORWARD
