"""Checks of declared connectors as a whole, before any of them starts."""

from __future__ import annotations

from collections.abc import Mapping

from airflow_pipelines.connectors.common_options import ConnectorOptions
from airflow_pipelines.contract.error_codes import ErrorCode
from airflow_pipelines.contract.problems import Problem
from airflow_pipelines.program.relations import View, ViewKind


def check_snapshot(output: str, view: View | None) -> None:
    """Refuse an output that should begin with its view's contents if these are not kept.

    :param output: the connector's full name
    :param view: its view, or None if the relation is not a view
    :raises Problem: if the view is not materialized
    """
    if view is None or view.kind is not ViewKind.MATERIALIZED:
        raise Problem(
            ErrorCode.INVALID_TRANSPORT_CONFIG,
            f"Connector {output!r} cannot start: 'send_snapshot' needs a view whose contents are kept. Declare it with CREATE "
            "MATERIALIZED VIEW.",
            {"connector": output},
        )


def check_start_after(inputs: Mapping[str, ConnectorOptions]) -> None:
    """Refuse ``start_after`` declarations that could never start.

    :param inputs: the options of each declared input
    :raises Problem: if there are such declarations; names the connectors
    """
    empty = sorted(name for name, options in inputs.items() if options.start_after == ())
    if empty:
        raise Problem(
            ErrorCode.EMPTY_START_AFTER,
            f"'start_after' of {', '.join(empty)} is an empty list, with which a connector would never start. Give labels, or "
            "leave the option out.",
        )
    carriers: dict[str, set[str]] = {}
    for name, options in inputs.items():
        for label in options.labels:
            carriers.setdefault(label, set()).add(name)
    waits = {
        name: {carrier for label in options.start_after or () for carrier in carriers.get(label, ())}
        for name, options in inputs.items()
    }
    done: set[str] = set()
    while ready := {name for name, needs in waits.items() if name not in done and needs <= done}:
        done |= ready
    if len(done) < len(waits):
        stuck = ", ".join(sorted(set(waits) - done))
        raise Problem(ErrorCode.CYCLIC_DEPENDENCY, f"the connectors {stuck} wait for each other by 'start_after'.")
