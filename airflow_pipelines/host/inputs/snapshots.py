"""Outputs that begin with the contents of their view."""

from __future__ import annotations

from airflow_pipelines.contract.error_codes import ErrorCode
from airflow_pipelines.contract.problems import Problem
from airflow_pipelines.program.relations import View, ViewKind


def check_snapshot(output: str, view: View | None) -> None:
    """Refuse an output that is to begin with contents that are not kept.

    :param output: the connector's full name
    :param view: its view; None for what is not a view
    :raises Problem: when the view is not materialized
    """
    if view is None or view.kind is not ViewKind.MATERIALIZED:
        raise Problem(
            ErrorCode.INVALID_TRANSPORT_CONFIG,
            f"Connector {output!r} cannot start: 'send_snapshot' needs a view whose contents are kept. Declare it with CREATE "
            "MATERIALIZED VIEW.",
            {"connector": output},
        )
