"""The end of a stream in the API of programs."""

from __future__ import annotations

from typing import Any

from airflow_pipelines.datastream.common.no_effect import no_effect
from airflow_pipelines.streams.graph.nodes import Node, checked_parallelism


class DataStreamSink:
    """The end of a stream.

    :param node: the sink

    >>> from airflow_pipelines.datastream import StreamExecutionEnvironment
    >>> env = StreamExecutionEnvironment.get_execution_environment()
    >>> sink = env.from_collection([7, 8]).print("order").name("orders on the terminal").uid("orders")
    >>> result = env.execute()
    order> 7
    order> 8
    """

    def __init__(self, node: Node) -> None:
        self._node = node

    def name(self, name: str) -> DataStreamSink:
        """Set the name of the sink, for people.

        :param name: the name
        :returns: this sink
        """
        self._node.name = name
        return self

    def uid(self, uid: str) -> DataStreamSink:
        """Set the id that identifies the state of the sink across changes of the program.

        :param uid: an id that is unique in the program
        :returns: this sink
        """
        self._node.uid = uid
        return self

    def set_parallelism(self, parallelism: int) -> DataStreamSink:
        """Set the number of tasks.

        :param parallelism: at least 1
        :returns: this sink
        """
        self._node.parallelism = checked_parallelism(parallelism)
        return self

    def set_uid_hash(self, uid_hash: str) -> DataStreamSink:
        """Set a hash that identifies the state of the sink, as a uid does.

        :param uid_hash: the hash
        :returns: this sink
        """
        return self.uid(uid_hash)

    def set_description(self, description: str) -> DataStreamSink:
        """Set the description of the sink, for people.

        :param description: the text that ``explain`` shows
        :returns: this sink
        """
        self._node.description = description
        return self

    def disable_chaining(self) -> DataStreamSink:
        """Exclude the sink from the chain of its input.

        :returns: this sink
        """
        self._node.chained_to_input = False
        return self

    @no_effect("all operators of a program share the resources of its pipeline")
    def slot_sharing_group(self, slot_sharing_group: Any) -> DataStreamSink:
        """Choose the group of operators to share resources with.

        :param slot_sharing_group: the group
        :returns: this sink
        """
        return self
