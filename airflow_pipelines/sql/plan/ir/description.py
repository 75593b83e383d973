"""The description of a plan's nodes in a layout: the fields that count, and their names.

A stored state is used again only if the layout of its stage is still the same (:mod:`airflow_pipelines.engine.layout`). So the
description of a node must not change when a class or a field is renamed, or when a field is added that follows from the others.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import Field, fields, is_dataclass
from enum import Enum
from types import MappingProxyType
from typing import Any

from airflow_pipelines.sql.plan.ir.node import Node
from airflow_pipelines.sql.values.float_division import with_plain_quotients

_NAME = "name in layouts"
_PLACE = "place in layouts"


class _Place(Enum):
    LEFT_OUT = "left out"
    BLANK = "blank"


DERIVED: Mapping[str, _Place] = MappingProxyType({_PLACE: _Place.LEFT_OUT})
"""Metadata of a field that follows from the node's other fields; layouts leave it out. Give it ``compare=False`` as well."""
REMARK: Mapping[str, _Place] = MappingProxyType({_PLACE: _Place.BLANK})
"""Metadata of a text for people; layouts have the field, but always with an empty text."""


def formerly(name: str) -> Mapping[str, str]:
    """Return the metadata of a renamed field, whose first name stays in layouts.

    :param name: the first name
    """
    return {_NAME: name}


def describe_node(value: Any) -> Any:
    """Return a node, or a part of one, as JSON for a layout.

    A renamed class gives its first name in the class variable ``layout_name``.

    :param value: a dataclass, an enum, a tuple, a text, a number, a boolean or None
    :raises TypeError: if the value is anything else
    """
    if is_dataclass(value):
        name = getattr(type(value), "layout_name", type(value).__name__)
        parts = [part for part in fields(value) if part.metadata.get(_PLACE) is not _Place.LEFT_OUT]
        return [name, {part.metadata.get(_NAME, part.name): _field(value, part) for part in parts}]
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, tuple):
        return [describe_node(part) for part in value]
    if isinstance(value, str):
        # Earlier releases had the plain division here, which gives the same contents.
        return with_plain_quotients(value)
    if value is None or isinstance(value, int):
        return value
    raise TypeError(f"a plan has a {type(value).__name__}, which has no place in a layout")


def layout_reads(node: Node) -> frozenset[str]:
    """Return the relations whose layouts are part of the layout of a node's stage: all that it reads.

    A node whose state outlives changes of what it reads lists its relations in the class variable ``layout_reads`` instead.

    :param node: the node
    """
    return getattr(type(node), "layout_reads", node.reads)


def _field(value: Any, part: Field[Any]) -> Any:
    return "" if part.metadata.get(_PLACE) is _Place.BLANK else describe_node(getattr(value, part.name))
