"""Aggregate calls that can be computed from accumulators over all rows of a group, though not from deltas alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from airflow_pipelines.sql.plan.blocks.accumulators import Accumulators, linear_form
from airflow_pipelines.sql.plan.ir.aggregate import Aggregate, Call, CallsOverRows


def calls_over_rows(node: Aggregate) -> CallsOverRows | None:
    """Return the calls of an aggregate as computed from accumulators over all rows of a group.

    :param node: the aggregate
    :returns: None if one of the calls cannot be computed from accumulators even then, or has an expression as argument
    """
    kinds = dict(zip(node.input.columns, node.input_types, strict=False))
    # The accumulators are computed from all rows at once, so that no row is retracted.
    accumulators = Accumulators(append_only=True)
    calls = [_over_rows(call, kinds, accumulators) for call in node.calls]
    computed = tuple(call for call in calls if call is not None)
    return CallsOverRows(computed, tuple(accumulators.accumulators)) if len(computed) == len(calls) else None


def _over_rows(call: Call, kinds: Mapping[str, str], accumulators: Accumulators) -> Call | None:
    form = None if call.text.tree is None else linear_form(call.text.tree)
    if form is None or not all(text == "*" or text in kinds for text in form.arguments):
        return None
    value = accumulators.value(form, tuple(kinds.get(text, "") for text in form.arguments), call.type)
    return None if value is None else replace(call, value=value.text, kept=value.kept)
