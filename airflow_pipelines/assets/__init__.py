"""Assets of pipelines and of their events, for schedules and outlets. All can be imported from here."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from airflow_pipelines.assets.pipeline import pipeline_asset, watched_pipeline

_MODULES: Final = {"pipeline_asset": "pipeline", "watched_pipeline": "pipeline"}

__all__ = ["pipeline_asset", "watched_pipeline"]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
