"""Descriptions of states as text.

They are stored beside the values, and compared with the states that a changed program declares.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from airflow_pipelines.streams.state.descriptors import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateDescriptor,
    ValueStateDescriptor,
)
from airflow_pipelines.streams.state.ttl import TimeToLive

_KINDS: dict[type[StateDescriptor], str] = {
    ValueStateDescriptor: "value",
    ListStateDescriptor: "list",
    MapStateDescriptor: "map",
    ReducingStateDescriptor: "reducing",
    AggregatingStateDescriptor: "aggregating",
}

BROADCAST_PREFIX = "broadcast/"
"""The prefix of the names of broadcast states: a keyed state may have the same name."""
TRIGGER_PREFIX = "trigger/"
"""The prefix of the names of the states of triggers, each of which belongs to a window."""


@dataclass(frozen=True, slots=True)
class StateDescription:
    """A description of a state of an operator, as text.

    :param name: the name in its descriptor
    :param kind: ``value``, ``list``, ``map``, ``reducing``, ``aggregating`` or ``broadcast``
    :param type: the declared type of its values; empty without one
    :param ttl: its time to live; empty without one
    """

    name: str
    kind: str
    type: str = ""
    ttl: str = ""


def describe_state(descriptor: StateDescriptor) -> StateDescription:
    """Return the description of a state.

    :param descriptor: the descriptor
    :returns: its parts as text
    """
    kind = next((kind for known, kind in _KINDS.items() if isinstance(descriptor, known)), type(descriptor).__name__)
    return StateDescription(descriptor.name, kind, describe_type(descriptor.type_info), _ttl(descriptor.ttl))


def describe_type(declared: Any) -> str:
    """Return a declared type as text.

    :param declared: the type, several of them, or None
    :returns: its text, empty for None
    """
    if declared is None:
        return ""
    if isinstance(declared, tuple):
        parts = [describe_type(each) for each in declared]
        return ", ".join(part or "ANY" for part in parts) if any(parts) else ""
    return str(declared)


def _ttl(ttl: TimeToLive | None) -> str:
    if ttl is None:
        return ""
    parts = [f"{ttl.milliseconds} ms"]
    if ttl.refreshed_on_read:
        parts.append("refreshed by reading")
    if ttl.expired_is_visible:
        parts.append("expired values visible")
    return ", ".join(parts)
