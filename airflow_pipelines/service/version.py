"""The release of this installation."""

from __future__ import annotations

from functools import cache
from importlib.metadata import PackageNotFoundError, version

from airflow_pipelines.contract.error_codes import ErrorCode
from airflow_pipelines.contract.problems import Problem


@cache
def platform_version() -> str:
    """Return the version of the installed package; ``0+unknown`` if it runs from a folder that was never installed."""
    try:
        return version("airflow-pipelines")
    except PackageNotFoundError:
        return "0+unknown"


def check_runtime_version(wanted: str | None) -> None:
    """Check that a request is for the release that runs here.

    :param wanted: the release that a request names; None for any
    :raises Problem: when it is another release
    """
    if wanted not in {None, platform_version()}:
        raise Problem(
            ErrorCode.INVALID_RUNTIME_VERSION,
            f"There is no runtime version '{wanted}' here, only {platform_version()}: leave the field out",
        )
