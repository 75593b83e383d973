"""Layouts: what a trace and an operator's state are made of, so that none is read that was written in another way.

A trace is found by the name of its relation, and names say little: ``view$1`` is whatever the plan of ``view`` needs first. A later
release may plan the same program in another way, or keep other things for the same plan. So each relation has a layout, a hash of
all that its rows and its state follow from, and what was saved under another one is not used.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from typing import Any

from pyspark.sql.types import StructType

from airflow_pipelines.engine.trace import Trace
from airflow_pipelines.sql.plan.ir.markers import Marker
from airflow_pipelines.sql.plan.ir.nodes import Full, Node, Stage, merging

RULES = 1
"""The version of the rules that make contents and states out of plans. Another number makes every view be evaluated anew after an
upgrade: for a change by which the same node keeps or gives something else."""
CANONICAL_FORM = 1
"""The version of the one form in which values are stored. It is part of the rules."""


def layouts(
    tables: Mapping[str, StructType], markers: Mapping[str, Marker], stages: Sequence[Stage], states: Mapping[str, Trace]
) -> dict[str, str]:
    """The layout of every relation of a circuit.

    A stage's layout contains those of all that it reads: what follows from something in another layout is in another one too.

    :param tables: the schemas of the tables' traces, and of the system view's
    :param markers: hidden relations that the stages may read
    :param stages: each after what it reads
    :param states: by relation, the empty states of the stages that keep one
    :returns: by relation
    """
    found = {name: table_layout(schema) for name, schema in tables.items()}
    found |= {name: _hash(_described(marker)) for name, marker in markers.items()}
    for stage in stages:
        found[stage.relation] = _hash(
            {
                "rules": [RULES, CANONICAL_FORM],
                "columns": stage.columns,
                "node": _described(_without_reason(stage.node)),
                "state": _described_trace(states[stage.relation]) if stage.relation in states else None,
                "reads": {name: found[name] for name in stage.reads},
            }
        )
    return found


def table_layout(schema: StructType) -> str:
    """The layout of a table: its rows come from outside, so that only their columns matter."""
    return _hash(schema.jsonValue())


def _without_reason(node: Node) -> Node:
    """The node without words for people."""
    return replace(node, reason="") if isinstance(node, Full) else node


def _described_trace(trace: Trace) -> dict[str, Any]:
    return {"schema": trace.schema.jsonValue(), "sums": [[name, merging(name)] for name in trace.sums]}


def _described(value: Any) -> Any:
    """A plan's node, or a part of it, as JSON has it."""
    if is_dataclass(value):
        return [type(value).__name__, {field.name: _described(getattr(value, field.name)) for field in fields(value)}]
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, tuple):
        return [_described(part) for part in value]
    if value is None or isinstance(value, str | int):
        return value
    raise TypeError(f"a plan has a {type(value).__name__}, which has no place in a layout")


def _hash(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]
