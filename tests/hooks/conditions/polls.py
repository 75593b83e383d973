"""What polls of a pipeline may see, for tests of conditions."""

from __future__ import annotations

from typing import Any

from airflow_pipelines.hooks.conditions import Observation


def seen(status: str = "Running", desired: str = "Running", *, at: float = 100.0, error: Any = None, **look: Any) -> Observation:
    """A poll of a pipeline that is there; ``look`` is the answer or the refusal that it got."""
    return Observation(descriptor(status, desired, error), at, **look)


def descriptor(status: str = "Running", desired: str = "Running", error: Any = None, **more: Any) -> dict[str, Any]:
    """What the conditions read of a descriptor."""
    return {"deployment_status": status, "deployment_desired_status": desired, "deployment_error": error} | more
