"""The operators of a stream program as a graph of chains: operators that pass elements on directly are one box."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

DIRECT: Final = "FORWARD"


@dataclass(frozen=True, slots=True)
class PlanNode:
    """An operator of an execution plan.

    :param id: its number
    :param name: its name for people
    :param parallelism: the number of its tasks
    :param reads: the numbers of the operators that it reads, each with the strategy by which elements are passed
    """

    id: int
    name: str
    parallelism: int
    reads: tuple[tuple[int, str], ...] = ()


@dataclass(frozen=True, slots=True)
class ChainBox:
    """A chain of operators that pass elements on directly.

    :param nodes: the operators, in that order
    """

    nodes: tuple[PlanNode, ...]

    @property
    def name(self) -> str:
        """The name of the chain in a graph."""
        return str(self.nodes[0].id)


@dataclass(frozen=True, slots=True)
class ChainEdge:
    """A path of elements from one chain to another.

    :param source: name of the chain that sends them
    :param target: name of the chain that reads them
    :param strategies: ``HASH``, ``BROADCAST``, ``REBALANCE`` ...; several if there is more than one connection
    """

    source: str
    target: str
    strategies: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ChainGraph:
    """The chains of a stream program and their connections."""

    chains: tuple[ChainBox, ...]
    exchanges: tuple[ChainEdge, ...]

    @classmethod
    def of_plan(cls, execution_plan: str) -> ChainGraph:
        """Read an execution plan.

        :param execution_plan: the JSON that ``get_execution_plan`` returns
        """
        nodes = [_node(each) for each in json.loads(execution_plan)["nodes"]] if execution_plan else []
        chains = _build_chains(nodes)
        head = {node.id: chain.name for chain in chains for node in chain.nodes}
        return cls(tuple(chains), tuple(_exchanges(chains, head)))


def _node(parts: Mapping[str, Any]) -> PlanNode:
    reads = tuple((int(each["id"]), str(each["ship_strategy"])) for each in parts.get("predecessors", ()))
    return PlanNode(int(parts["id"]), str(parts["contents"]), int(parts["parallelism"]), reads)


def _build_chains(nodes: Sequence[PlanNode]) -> list[ChainBox]:
    readers = Counter(source for node in nodes for source, _ in node.reads)
    by_id = {node.id: node for node in nodes}
    following: dict[int, PlanNode] = {}
    for node in nodes:
        if len(node.reads) == 1:
            source, strategy = node.reads[0]
            if strategy == DIRECT and readers[source] == 1 and by_id[source].parallelism == node.parallelism:
                following[source] = node
    inner = {node.id for node in following.values()}
    return [ChainBox(tuple(_follow_chain(node, following))) for node in nodes if node.id not in inner]


def _follow_chain(node: PlanNode, following: Mapping[int, PlanNode]) -> Iterator[PlanNode]:
    current: PlanNode | None = node
    while current is not None:
        yield current
        current = following.get(current.id)


def _exchanges(chains: Sequence[ChainBox], head: Mapping[int, str]) -> Iterator[ChainEdge]:
    for chain in chains:
        strategies: dict[str, list[str]] = {}
        for source, strategy in chain.nodes[0].reads:
            known = strategies.setdefault(head[source], [])
            if strategy not in known:
                known.append(strategy)
        yield from (ChainEdge(source, chain.name, tuple(names)) for source, names in strategies.items())
