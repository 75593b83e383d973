"""Layouts: hashes of what determines a trace and an operator's state, so that nothing is read that was written in another way.

A trace is found by the name of its relation, and names say little: ``view$1`` is the first internal relation of the plan of
``view``. A later release may plan the same program in another way, or keep other things for the same plan. So each relation has a
layout, a hash of all that determines its rows and its state. Contents that were saved under another layout are not used.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql.types import StructType

from airflow_pipelines.engine.storage.manifest import CANONICAL_FORM
from airflow_pipelines.engine.trace import Trace
from airflow_pipelines.sql.plan.ir.description import describe_node, layout_reads
from airflow_pipelines.sql.plan.ir.markers import Marker
from airflow_pipelines.sql.plan.ir.stage import Stage

RULES = 1
"""The version of the rules that turn plans into contents and states.

A new number makes every view be evaluated anew after an upgrade. It is for changes that make the same node keep or return other
rows.
"""
States = Mapping[str, Mapping[str, Trace]]
"""States by the relation that their operator computes, and by name."""


def layouts(
    tables: Mapping[str, StructType], markers: Mapping[str, Marker], stages: Sequence[Stage], states: States
) -> dict[str, str]:
    """Return the layout of every relation of a circuit.

    A stage's layout contains those of all its inputs: if the layout of an input differs, so does the layout of the stage.

    :param tables: the schemas of the tables' traces, and of the system view's trace
    :param markers: hidden relations that the stages may read
    :param stages: the stages, each after its inputs
    :param states: the empty states of the stages, by relation and name
    :returns: the layouts by relation
    """
    hashes = {name: table_layout(schema) for name, schema in tables.items()}
    hashes |= {name: _hash(describe_node(marker)) for name, marker in markers.items()}
    for stage in stages:
        hashes[stage.relation] = _hash(
            {
                "rules": [RULES, CANONICAL_FORM],
                "columns": stage.columns,
                "node": describe_node(stage.node),
                "state": _describe_states(states.get(stage.relation, {})),
                "reads": {name: hashes[name] for name in layout_reads(stage.node)},
            }
        )
    return hashes


def table_layout(schema: StructType) -> str:
    """Return the layout of a table. Its rows come from outside, so only their columns matter."""
    return _hash(schema.jsonValue())


def _describe_states(states: Mapping[str, Trace]) -> Any:
    """Return the description of a stage's states. A single state has no name in the layout."""
    if len(states) == 1:
        return _describe_trace(*states.values())
    return {name: _describe_trace(state) for name, state in sorted(states.items())} or None


def _describe_trace(trace: Trace) -> dict[str, Any]:
    return {"schema": trace.schema.jsonValue(), "sums": [[name, merge.value] for name, merge in trace.merges.items()]}


def _hash(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]
