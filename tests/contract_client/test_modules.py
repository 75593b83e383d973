"""Names that users of the foreign package import from its modules are in modules of the same names here."""

from __future__ import annotations

import inspect
from importlib import import_module

import pytest


@pytest.mark.parametrize("name", ["enums", "stats", "runtime_config", "output_handler", "pipeline", "pipeline_builder"])
def test_the_classes_of_a_module_are_in_ours(name: str) -> None:
    foreign, ours = import_module(f"feldera.{name}"), import_module(f"airflow_pipelines.{name}")
    classes = {each for each, value in vars(foreign).items() if inspect.isclass(value) and value.__module__ == foreign.__name__}
    assert classes
    assert [each for each in sorted(classes) if not inspect.isclass(getattr(ours, each, None))] == []
