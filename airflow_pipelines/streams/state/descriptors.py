"""Descriptors of states: the name of a state, the combination of its values, and their expiry. Types are optional and do not affect
the stored values.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Callable
from typing import Any

from airflow_pipelines.streams.errors import StreamProgramError
from airflow_pipelines.streams.state.ttl import TimeToLive


class StateDescriptor(ABC):  # noqa: B024 (what is abstract follows in its kinds)
    """A descriptor of a state of an operator.

    :param name: the name, unique among the states of an operator
    :param type_info: the declared type; optional
    :raises StreamProgramError: if the name is empty
    """

    def __init__(self, name: str, type_info: Any = None) -> None:
        if not isinstance(name, str) or not name:
            raise StreamProgramError(f"The name of a state is {name!r}: it must be a string that is not empty.")
        self.name = name
        self.type_info = type_info
        self.ttl: TimeToLive | None = None

    def get_name(self) -> str:
        """Return the name.

        :returns: the name as it was given
        """
        return self.name

    def enable_time_to_live(self, ttl_config: Any) -> None:
        """Let values expire.

        :param ttl_config: a :class:`TimeToLive`, or a configuration with a method ``time_to_live`` that returns one
        """
        self.ttl = ttl_config if isinstance(ttl_config, TimeToLive) else ttl_config.time_to_live()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"


class ValueStateDescriptor(StateDescriptor):
    """A descriptor of a state with one value.

    :param name: the name of the state
    :param value_type_info: the declared type; optional
    """

    def __init__(self, name: str, value_type_info: Any = None) -> None:
        super().__init__(name, value_type_info)


class ListStateDescriptor(StateDescriptor):
    """A descriptor of a state with a list.

    :param name: the name of the state
    :param elem_type_info: the declared type of its elements; optional
    """

    def __init__(self, name: str, elem_type_info: Any = None) -> None:
        super().__init__(name, elem_type_info)


class MapStateDescriptor(StateDescriptor):
    """A descriptor of a state with a map.

    :param name: the name of the state
    :param key_type_info: the declared type of its keys; optional
    :param value_type_info: the declared type of its values; optional
    """

    def __init__(self, name: str, key_type_info: Any = None, value_type_info: Any = None) -> None:
        super().__init__(name, (key_type_info, value_type_info))


class ReducingStateDescriptor(StateDescriptor):
    """A descriptor of a state with a value that a function combines with others.

    :param name: the name of the state
    :param reduce_function: the function that combines two values: a callable, or an object with ``reduce``
    :param type_info: the declared type; optional
    """

    def __init__(self, name: str, reduce_function: Any, type_info: Any = None) -> None:
        super().__init__(name, type_info)
        self.reduce_function = reduce_function

    def get_reduce_function(self) -> Any:
        """Return the function that combines values.

        :returns: the function as it was given
        """
        return self.reduce_function

    @property
    def reduce(self) -> Callable[[Any, Any], Any]:
        """The function that combines values, as a callable."""
        reduce: Callable[[Any, Any], Any] = getattr(self.reduce_function, "reduce", self.reduce_function)
        return reduce


class AggregatingStateDescriptor(StateDescriptor):
    """A descriptor of a state with an accumulator to which values are added.

    :param name: the name of the state
    :param agg_function: an object with ``create_accumulator``, ``add``, ``get_result`` and ``merge``
    :param state_type_info: the declared type of the accumulator; optional
    """

    def __init__(self, name: str, agg_function: Any, state_type_info: Any = None) -> None:
        super().__init__(name, state_type_info)
        self.agg_function = agg_function

    def get_agg_function(self) -> Any:
        """Return the function that adds values.

        :returns: the function as it was given
        """
        return self.agg_function
