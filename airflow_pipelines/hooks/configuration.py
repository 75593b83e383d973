"""What tasks read of Airflow's configuration: the section ``[airflow_pipelines]``, and the default of ``deferrable``."""

from __future__ import annotations

from airflow.sdk import conf

from airflow_pipelines.hooks.waiting import OUTAGE_BUDGET_S

SECTION = "airflow_pipelines"
FIRST_DELAY_S = 10.0


def first_delay_s() -> float:
    """Seconds that a trigger sleeps at least before its first poll: ``deferral_first_delay``."""
    return float(conf.getfloat(SECTION, "deferral_first_delay", fallback=FIRST_DELAY_S))


def outage_budget_s() -> float:
    """Seconds that the service may be away without a request or a wait failing: ``outage_budget``."""
    return float(conf.getfloat(SECTION, "outage_budget", fallback=OUTAGE_BUDGET_S))


def is_deferrable(given: bool | None) -> bool:
    """Whether a task waits in the triggerer.

    :param given: the task's own ``deferrable``; None for ``[operators] default_deferrable``
    """
    return bool(conf.getboolean("operators", "default_deferrable", fallback=False)) if given is None else given
