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
    """The kind of an exchange. The values are the names in plans."""

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
    """The rule that decides which task gets an element.

    :param kind: the kind; DEFAULT is FORWARD between nodes of the same parallelism, else REBALANCE
    :param selector: a function that returns the key of a value: HASH, CUSTOM
    :param partitioner: a function that returns the number of the task from the key and the number of tasks: CUSTOM
    :param key_type: the declared type of the keys as text, empty without one: HASH
    """

    kind: ExchangeKind
    selector: Callable[[Any], Any] | None = None
    partitioner: Callable[[Any, int], int] | None = None
    key_type: str = ""


DEFAULT_EXCHANGE = Exchange(ExchangeKind.DEFAULT)


@dataclass(frozen=True)
class Edge:
    """A connection from the output of one node to another node.

    :param source: the id of the node that writes
    :param exchange: the exchange, which decides which task gets an element
    :param tag: the name of the side output, None for the main output
    :param port: the input of the reading node: 0, or 1 for the second of two
    """

    source: int
    exchange: Exchange = DEFAULT_EXCHANGE
    tag: str | None = None
    port: int = 0


@dataclass
class Node:
    """An operator of the program.

    :param id: the number in the graph, from 1 in the order of the program
    :param name: the name, for people
    :param operator: the specification of the operator
    :param inputs: the edges that it reads
    :param parallelism: the number of tasks, None for the program's default
    :param max_parallelism: the number of key groups, None for the program's default
    :param uid: the name of its state across changes of the program
    :param output_type: the declared type of its values, without effect on stored state
    :param convert: the conversion of a value to the declared type
    :param side_converts: the conversions for side outputs, by the names of their tags
    :param non_parallel: True if it always has one task
    :param chained_to_input: False if a chain must begin here
    :param chained_to_outputs: False if a chain must end here
    :param description: a description, for people
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
    """A program: its nodes in the order in which it named them, so that inputs come before their readers.

    :param nodes: the nodes by id
    """

    nodes: dict[int, Node] = field(default_factory=dict)

    def add(self, name: str, operator: OperatorSpec, inputs: list[Edge], **settings: Any) -> Node:
        """Add a node.

        :param name: the name, for people
        :param operator: the specification of the operator
        :param inputs: the edges that it reads
        :param settings: other fields of :class:`Node`
        :returns: the node
        """
        node = Node(len(self.nodes) + 1, name, operator, inputs, **settings)
        self.nodes[node.id] = node
        return node

    def upstream_of(self, ids: list[int]) -> list[Node]:
        """Return the nodes that some nodes need.

        :param ids: the ids of the nodes
        :returns: these nodes and all that they read, in the order of the program
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
        """Return the sources that a node depends on.

        :param node: the node
        :returns: nodes without inputs
        """
        return (each for each in self.upstream_of([node.id]) if not each.inputs)


def checked_parallelism(value: Any) -> int:
    """Check a parallelism and return it.

    :param value: the value that the program gives
    :returns: the number
    :raises StreamProgramError: if it is not a valid number of tasks
    """
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise StreamProgramError(f"The parallelism is {value!r}: it must be a whole number of at least 1.")
    return value


def checked_max_parallelism(value: Any) -> int:
    """Check a maximum parallelism and return it.

    :param value: the value that the program gives
    :returns: the number
    :raises StreamProgramError: if it is not a valid number of key groups
    """
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= LARGEST_MAX_PARALLELISM:
        raise StreamProgramError(
            f"The maximum parallelism is {value!r}: it must be a whole number from 1 to {LARGEST_MAX_PARALLELISM}."
        )
    return value
