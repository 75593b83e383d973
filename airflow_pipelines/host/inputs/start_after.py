"""The order in which inputs start that wait for the end of others."""

from __future__ import annotations

from collections.abc import Mapping

from airflow_pipelines.connectors.common_options import ConnectorOptions
from airflow_pipelines.contract.error_codes import ErrorCode
from airflow_pipelines.contract.problems import Problem


def check_start_after(inputs: Mapping[str, ConnectorOptions]) -> None:
    """Refuse ``start_after`` declarations that could never start.

    :param inputs: the options of each declared input
    :raises Problem: it names the connectors
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
