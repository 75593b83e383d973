"""The SDK has every class, method, parameter, default, member and field of the reference (``surface.txt``)."""

from __future__ import annotations

import ast
import enum
import inspect
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import airflow_pipelines
from airflow_pipelines import stats
from airflow_pipelines.contract import stats as contract_stats

OPTIONAL_HERE = {("PipelineBuilder", "sql")}
"""Parameters that callers of the reference have to give: beside a stream program there need not be any SQL."""
SURFACE = Path(__file__).with_name("surface.txt")


def entries() -> Iterator[tuple[str, list[str]]]:
    """The classes of the reference, each with the lines about it."""
    text = "\n".join(line for line in SURFACE.read_text().splitlines() if not line.startswith("#"))
    for paragraph in text.strip().split("\n\n"):
        head, *rest = paragraph.strip().splitlines()
        yield head, [line.strip() for line in rest]


def signature_of(text: str) -> tuple[str, ast.arguments]:
    """The name and the parameters in a line such as ``stop(force, wait=True)``."""
    (function,) = ast.parse(f"def {text}: pass").body
    assert isinstance(function, ast.FunctionDef)
    return function.name, function.args


def class_of(name: str) -> type:
    found = getattr(airflow_pipelines, name, None) or getattr(stats, name)
    assert isinstance(found, type)
    return found


def assert_takes(function: Any, wanted: ast.arguments, where: str) -> None:
    """A function takes what the reference says: in the same order where that matters, with the same defaults."""
    parameters = {name: each for name, each in inspect.signature(function).parameters.items() if name != "self"}
    positional = [name for name, each in parameters.items() if each.kind is each.POSITIONAL_OR_KEYWORD]
    names = [each.arg for each in wanted.args]
    assert positional[: len(names)] == names, where
    without = [inspect.Parameter.empty] * (len(names) - len(wanted.defaults))
    given = dict(zip(names, [*without, *wanted.defaults], strict=True))
    given |= {each.arg: value for each, value in zip(wanted.kwonlyargs, wanted.kw_defaults, strict=True) if value is not None}
    for name, default in given.items():
        found = parameters[name].default
        if isinstance(default, ast.expr):
            value = ast.literal_eval(default)
            assert found is not inspect.Parameter.empty, f"{where}: {name} has no default"
            assert value is ... or found == value, f"{where}: {name}"
        else:
            assert found is inspect.Parameter.empty or (where, name) in OPTIONAL_HERE, f"{where}: {name} has a default"
    assert (wanted.kwarg is None) or any(each.kind is each.VAR_KEYWORD for each in parameters.values()), where
    added = set(positional) - {*given}
    assert all(parameters[name].default is not inspect.Parameter.empty for name in added), f"{where}: {added} must be given"


@pytest.mark.parametrize(("head", "lines"), entries(), ids=lambda value: value.partition("(")[0] if isinstance(value, str) else "")
def test_a_class_is_that_of_the_reference(head: str, lines: list[str]) -> None:
    found = class_of(head.partition("(")[0])
    if "(" in head:
        name, wanted = signature_of(head)
        assert_takes(found, wanted, name)
    for line in lines:
        kind, _, names = line.partition(":")
        if kind == "members":
            assert issubclass(found, enum.Enum)
            wanted = dict(each.partition("=")[::2] for each in names.split())
            assert wanted.keys() <= found.__members__.keys()
            assert {name: found[name].value for name, value in wanted.items() if value} == {k: v for k, v in wanted.items() if v}
        elif kind == "fields":
            assert [name for name in names.split() if not hasattr(found(), name)] == []
        else:
            name, wanted = signature_of(line)
            method = inspect.getattr_static(found, name)
            assert inspect.getdoc(getattr(method, "__func__", method)), f"{found.__name__}.{name} is not documented"
            assert_takes(getattr(found, name), wanted, f"{found.__name__}.{name}")


def test_all_statistics_can_be_imported_beside_the_enumerations() -> None:
    classes = {each for each, value in vars(contract_stats).items() if inspect.isclass(value) and not each.startswith("_")}
    own = {each for each in classes if vars(contract_stats)[each].__module__ == contract_stats.__name__}
    assert own == set(stats.__all__)
    assert all(getattr(stats, each) is getattr(contract_stats, each) for each in own)


def test_nothing_of_the_sdk_is_missing() -> None:
    files = (Path(airflow_pipelines.__file__).parent / "sdk").rglob("*.py")
    assert [path.name for path in files if "NotImplementedError" in path.read_text()] == []


@pytest.mark.parametrize("name", ["enums", "output_handler", "pipeline", "pipeline_builder", "runtime_config"])
def test_a_module_that_users_import_has_the_classes_of_the_package(name: str) -> None:
    module = import_module(f"airflow_pipelines.{name}")
    assert module.__all__
    assert all(getattr(module, each) is getattr(airflow_pipelines, each) for each in module.__all__)


def test_the_page_names_every_method_of_pipelines_and_clients() -> None:
    page = (Path(__file__).parents[2] / "docs" / "sdk.md").read_text().partition("## Every method")[2]
    for of in (airflow_pipelines.Pipeline, airflow_pipelines.PipelineClient):
        methods = [name for name in dir(of) if not name.startswith("_")]
        assert [name for name in methods if not re.search(rf"[`.]{name}[`(]", page)] == []
