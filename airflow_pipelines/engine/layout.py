"""Layouts: what a trace and an operator's state are made of, so that none is read that was written in another way.

A trace is found by the name of its relation, and names say little: ``view$1`` is whatever the plan of ``view`` needs first. A later
release may plan the same program in another way, or keep other things for the same plan. So each relation has a layout, a hash of
all that its rows and its state follow from, and what was saved under another one is not used.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql.types import StructType

from airflow_pipelines.engine.trace import Trace
from airflow_pipelines.sql.plan.ir.description import described, layout_reads
from airflow_pipelines.sql.plan.ir.markers import Marker
from airflow_pipelines.sql.plan.ir.stage import Stage

RULES = 1
"""The version of the rules that make contents and states out of plans. Another number makes every view be evaluated anew after an
upgrade: for a change by which the same node keeps or gives something else."""
CANONICAL_FORM = 1
"""The version of the one form in which values are stored. It is part of the rules."""


States = Mapping[str, Mapping[str, Trace]]
"""States by the relation that their operator computes, and by name."""


def layouts(
    tables: Mapping[str, StructType], markers: Mapping[str, Marker], stages: Sequence[Stage], states: States
) -> dict[str, str]:
    """The layout of every relation of a circuit.

    A stage's layout contains those of all that it reads: what follows from something in another layout is in another one too.

    :param tables: the schemas of the tables' traces, and of the system view's
    :param markers: hidden relations that the stages may read
    :param stages: each after what it reads
    :param states: by relation and name, the empty states of the stages
    :returns: by relation
    """
    found = {name: table_layout(schema) for name, schema in tables.items()}
    found |= {name: _hash(described(marker)) for name, marker in markers.items()}
    for stage in stages:
        found[stage.relation] = _hash(
            {
                "rules": [RULES, CANONICAL_FORM],
                "columns": stage.columns,
                "node": described(stage.node),
                "state": _described_states(states.get(stage.relation, {})),
                "reads": {name: found[name] for name in layout_reads(stage.node)},
            }
        )
    return found


def table_layout(schema: StructType) -> str:
    """The layout of a table: its rows come from outside, so that only their columns matter."""
    return _hash(schema.jsonValue())


def _described_states(states: Mapping[str, Trace]) -> Any:
    """The only state of a stage has no name in its layout."""
    if len(states) == 1:
        return _described_trace(*states.values())
    return {name: _described_trace(state) for name, state in sorted(states.items())} or None


def _described_trace(trace: Trace) -> dict[str, Any]:
    return {"schema": trace.schema.jsonValue(), "sums": [[name, merge.value] for name, merge in trace.merges.items()]}


def _hash(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]
