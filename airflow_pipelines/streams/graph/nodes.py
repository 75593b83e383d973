"""Nodes of a program and the edges between them, as the APIs build them."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from airflow_pipelines.streams.errors import StreamProgramError
from airflow_pipelines.streams.operators.base import OperatorSpec

DEFAULT_MAX_PARALLELISM = 128
LARGEST_MAX_PARALLELISM = 32768


class ExchangeKind(enum.Enum):
    """How elements find the task that reads them. The values are the names in plans."""

    DEFAULT = "DEFAULT"
    FORWARD = "FORWARD"
    HASH = "HASH"
    REBALANCE = "REBALANCE"
    RESCALE = "RESCALE"
    SHUFFLE = "SHUFFLE"
    BROADCAST = "BROADCAST"
    GLOBAL = "GLOBAL"
    CUSTOM = "CUSTOM"


@dataclass(frozen=True)
class Exchange:
    """How elements find the task that reads them.

    :param kind: DEFAULT is FORWARD between nodes of the same parallelism, else REBALANCE
    :param selector: gives the key of a value: HASH, CUSTOM
    :param partitioner: gives the number of the task from the key and the number of tasks: CUSTOM
    :param key_type: the declared type of the keys as text, empty without one: HASH
    """

    kind: ExchangeKind
    selector: Callable[[Any], Any] | None = None
    partitioner: Callable[[Any, int], int] | None = None
    key_type: str = ""


DEFAULT_EXCHANGE = Exchange(ExchangeKind.DEFAULT)


@dataclass(frozen=True)
class Edge:
    """Brings the output of one node to another.

    :param source: id of the node that gives
    :param exchange: how elements find their task
    :param tag: name of the side output, None for the output itself
    :param port: which input of the reading node: 0, or 1 for the second of two
    """

    source: int
    exchange: Exchange = DEFAULT_EXCHANGE
    tag: str | None = None
    port: int = 0


@dataclass
class Node:
    """An operator of the program.

    :param id: number in the graph, from 1 in the order of the program
    :param name: for people
    :param operator: what it does
    :param inputs: what it reads
    :param parallelism: how many tasks, None for the program's default
    :param max_parallelism: number of key groups, None for the program's default
    :param uid: names its state across changes of the program
    :param output_type: declared type of its values, without effect on what is kept
    :param convert: what a declared type does to a value
    :param side_converts: the same for side outputs, by the names of their tags
    :param non_parallel: it has one task whatever the program says
    :param chained_to_input: False where a chain must begin
    :param chained_to_outputs: False where a chain must end
    :param description: for people
    """

    id: int
    name: str
    operator: OperatorSpec
    inputs: list[Edge] = field(default_factory=list)
    parallelism: int | None = None
    max_parallelism: int | None = None
    uid: str | None = None
    output_type: Any = None
    convert: Callable[[Any], Any] | None = None
    side_converts: dict[str, Callable[[Any], Any]] = field(default_factory=dict)
    non_parallel: bool = False
    chained_to_input: bool = True
    chained_to_outputs: bool = True
    description: str | None = None


@dataclass
class Graph:
    """A program: nodes in the order in which it named them, so that inputs come before what reads them.

    :param nodes: by id
    """

    nodes: dict[int, Node] = field(default_factory=dict)

    def add(self, name: str, operator: OperatorSpec, inputs: list[Edge], **settings: Any) -> Node:
        """Add a node.

        :param name: for people
        :param operator: what it does
        :param inputs: what it reads
        :param settings: other fields of :class:`Node`
        :returns: the node
        """
        node = Node(len(self.nodes) + 1, name, operator, inputs, **settings)
        self.nodes[node.id] = node
        return node

    def upstream_of(self, ids: list[int]) -> list[Node]:
        """What some nodes need.

        :param ids: the nodes
        :returns: these and all that they read, in the order of the program
        """
        needed: set[int] = set()
        waiting = list(ids)
        while waiting:
            current = waiting.pop()
            if current not in needed:
                needed.add(current)
                waiting.extend(edge.source for edge in self.nodes[current].inputs)
        return [node for key, node in self.nodes.items() if key in needed]

    def sources_of(self, node: Node) -> Iterator[Node]:
        """The sources that a node depends on.

        :param node: the node
        :returns: nodes without inputs
        """
        return (each for each in self.upstream_of([node.id]) if not each.inputs)


def checked_parallelism(value: Any) -> int:
    """A parallelism that can be had.

    :param value: what the program asks for
    :returns: the number
    :raises StreamProgramError: when it is no number of tasks
    """
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise StreamProgramError(f"The parallelism is {value!r}: it must be a whole number of at least 1.")
    return value


def checked_max_parallelism(value: Any) -> int:
    """A maximum parallelism that can be had.

    :param value: what the program asks for
    :returns: the number
    :raises StreamProgramError: when it is no number of key groups
    """
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= LARGEST_MAX_PARALLELISM:
        raise StreamProgramError(
            f"The maximum parallelism is {value!r}: it must be a whole number from 1 to {LARGEST_MAX_PARALLELISM}."
        )
    return value
