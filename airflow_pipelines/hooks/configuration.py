"""The Airflow configuration that tasks read: the section ``[airflow_pipelines]``, and the default of ``deferrable``."""

from __future__ import annotations

from airflow.sdk import conf

from airflow_pipelines.hooks.waiting import OUTAGE_BUDGET_S

SECTION = "airflow_pipelines"
FIRST_DELAY_S = 10.0


def first_delay_s() -> float:
    """Return the minimum seconds that a trigger sleeps before its first poll: ``deferral_first_delay``."""
    return float(conf.getfloat(SECTION, "deferral_first_delay", fallback=FIRST_DELAY_S))


def outage_budget_s() -> float:
    """Return the seconds that the service may be away before a request or a wait fails: ``outage_budget``."""
    return float(conf.getfloat(SECTION, "outage_budget", fallback=OUTAGE_BUDGET_S))


def is_deferrable(given: bool | None) -> bool:
    """Return True if a task waits in the triggerer.

    :param given: the task's own ``deferrable``; None for ``[operators] default_deferrable``
    """
    return bool(conf.getboolean("operators", "default_deferrable", fallback=False)) if given is None else given
