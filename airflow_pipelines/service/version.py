"""The release that runs here."""

from __future__ import annotations

from functools import cache
from importlib.metadata import PackageNotFoundError, version


@cache
def platform_version() -> str:
    """The version of the installed package; ``0+unknown`` when it runs from a folder that was never installed."""
    try:
        return version("airflow-pipelines")
    except PackageNotFoundError:
        return "0+unknown"
