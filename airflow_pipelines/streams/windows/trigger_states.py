"""The states that a trigger keeps for its windows, as far as they can be found without running it."""

from __future__ import annotations

from collections.abc import Iterator
from types import FunctionType
from typing import Any

from airflow_pipelines.streams.nested_code import nested_code
from airflow_pipelines.streams.state.descriptors import StateDescriptor
from airflow_pipelines.streams.windows.trigger import Trigger


def trigger_states(trigger: Trigger[Any, Any]) -> list[StateDescriptor]:
    """Return the descriptors of a trigger's states.

    They are found as attributes of the trigger, of its classes and of triggers within it, and as variables of modules that its
    methods use. A descriptor that a method creates when it is called cannot be found.

    :param trigger: the trigger
    :returns: one descriptor for each name, in the order of the names
    """
    by_name = {descriptor.name: descriptor for descriptor in _descriptors(trigger, set())}
    return [by_name[name] for name in sorted(by_name)]


def _descriptors(trigger: Trigger[Any, Any], seen: set[int]) -> Iterator[StateDescriptor]:
    seen.add(id(trigger))
    for value in _find_reachable(trigger):
        if isinstance(value, StateDescriptor):
            yield value
        elif isinstance(value, Trigger) and id(value) not in seen:
            yield from _descriptors(value, seen)


def _find_reachable(trigger: Trigger[Any, Any]) -> Iterator[Any]:
    yield from getattr(trigger, "__dict__", {}).values()
    for cls in type(trigger).__mro__:
        for value in vars(cls).values():
            yield value
            if isinstance(value, FunctionType):
                names = {name for code in nested_code(value.__code__) for name in code.co_names}
                yield from (value.__globals__[name] for name in sorted(names & value.__globals__.keys()))
