"""The settings of the operator that produces a stream: its name, its tasks, and its place in chains."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

from airflow_pipelines.datastream.common.no_effect import no_effect
from airflow_pipelines.streams.errors import StreamProgramError
from airflow_pipelines.streams.graph.nodes import (
    DEFAULT_EXCHANGE,
    Exchange,
    Node,
    checked_max_parallelism,
    checked_parallelism,
)


@dataclass(frozen=True)
class Port:
    """An output of a node.

    :param node: the node
    :param tag: name of the side output, None for the output itself
    :param side_type: declared type of the side output
    """

    node: Node
    tag: str | None = None
    side_type: Any = None


class StreamSettings:
    """The settings of the operator that produces a stream.

    :param ports: the outputs that the elements come from; several for a union
    :param exchange: the distribution of the elements over tasks
    """

    def __init__(self, ports: tuple[Port, ...], exchange: Exchange) -> None:
        self._ports = ports
        self._exchange = exchange

    def get_name(self) -> str:
        """Return the name of the operator that produces the elements.

        :returns: the name
        """
        return self._node.name

    def name(self, name: str) -> Self:
        """Set the name of the operator that produces the elements, for people.

        :param name: the name
        :returns: this stream
        """
        self._own_node("name").name = name
        return self

    def uid(self, uid: str) -> Self:
        """Set the id that identifies the state of the operator across changes of the program.

        :param uid: an id that is unique in the program
        :returns: this stream
        """
        self._own_node("uid").uid = uid
        return self

    def set_parallelism(self, parallelism: int) -> Self:
        """Set the number of tasks of the operator.

        :param parallelism: at least 1
        :returns: this stream
        """
        node = self._own_node("set_parallelism")
        if node.non_parallel and parallelism != 1:
            raise StreamProgramError(f"The operator {node.name!r} cannot be parallel: its parallelism stays 1.")
        node.parallelism = checked_parallelism(parallelism)
        return self

    def set_max_parallelism(self, max_parallelism: int) -> Self:
        """Set the number of key groups of the operator, which cannot change later.

        :param max_parallelism: from 1 to 32768
        :returns: this stream
        """
        self._own_node("set_max_parallelism").max_parallelism = checked_max_parallelism(max_parallelism)
        return self

    def set_uid_hash(self, uid_hash: str) -> Self:
        """Set a hash that identifies the state of the operator, as a uid does.

        :param uid_hash: the hash
        :returns: this stream
        """
        return self.uid(uid_hash)

    def set_description(self, description: str) -> Self:
        """Set the description of the operator, for people.

        :param description: the text that ``explain`` shows
        :returns: this stream
        """
        self._own_node("set_description").description = description
        return self

    def force_non_parallel(self) -> Self:
        """Limit the operator to one task, regardless of the parallelism of the program.

        :returns: this stream
        """
        node = self._own_node("force_non_parallel")
        node.non_parallel = True
        return self

    def start_new_chain(self) -> Self:
        """Start a new chain with the operator.

        :returns: this stream
        """
        self._own_node("start_new_chain").chained_to_input = False
        return self

    def disable_chaining(self) -> Self:
        """Exclude the operator from chains, so that it forms its own.

        :returns: this stream
        """
        node = self._own_node("disable_chaining")
        node.chained_to_input = node.chained_to_outputs = False
        return self

    @no_effect("all operators of a program share the resources of its pipeline")
    def slot_sharing_group(self, slot_sharing_group: Any) -> Self:
        """Choose the group of operators to share resources with.

        :param slot_sharing_group: the group
        :returns: this stream
        """
        return self

    @no_effect("elements are handed over at the end of each step")
    def set_buffer_timeout(self, timeout_millis: int) -> Self:
        """Set the maximum time that elements wait before they are handed over.

        :param timeout_millis: milliseconds
        :returns: this stream
        """
        return self

    @property
    def _node(self) -> Node:
        return self._ports[0].node

    def _own_node(self, method: str) -> Node:
        if len(self._ports) > 1 or self._ports[0].tag is not None or self._exchange is not DEFAULT_EXCHANGE:
            raise StreamProgramError(f"{method}() belongs to an operator: call it on what map(), process() and the like return.")
        return self._node
