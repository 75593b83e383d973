"""Only ``engine/spark`` touches what PySpark keeps private, so that a new Spark release is a change of that folder alone."""

from __future__ import annotations

import ast
import functools
import importlib
import re
from collections.abc import Iterator
from pathlib import Path

import pyspark
import pytest

ROOT = Path(__file__).parents[2]
DOOR = (ROOT / "airflow_pipelines" / "engine" / "spark", ROOT / "tests" / "engine" / "spark")
PUBLIC = frozenset({"pyspark", "pyspark.errors", "pyspark.sql", "pyspark.sql.functions", "pyspark.sql.types"})
"""The modules of PySpark's API reference that are used here."""
OWN = re.compile(r"(?:\bself\.|\bcls\.|\bdef |^ +)(_[a-z]\w*)\b(?!\.)", re.MULTILINE)
"""The private attributes, methods and fields that a module gives to its own objects."""
READ = re.compile(r"\.(_[a-z]\w*)")
IMPORT = re.compile(r"^\s*(?:from|import) pyspark\b.*", re.MULTILINE)


def modules() -> Iterator[Path]:
    for folder in ("airflow_pipelines", "benchmarks", "dags_examples", "tests", "tools"):
        for file in sorted((ROOT / folder).rglob("*.py")):
            if not any(file.is_relative_to(door) for door in DOOR):
                yield file


def private_names(ours: set[str]) -> frozenset[str]:
    """The private attributes of PySpark's objects: all that stand for Java objects, and others that are no names of ours."""
    return frozenset(name for name in names_of_pyspark() if name.startswith("_j") or name not in ours)


@functools.cache
def names_of_pyspark() -> frozenset[str]:
    root = Path(pyspark.__file__).parent
    files = (file for folder in ("core", "errors/exceptions", "sql", "sql/classic") for file in (root / folder).glob("*.py"))
    return frozenset(name for file in files for name in OWN.findall(file.read_text()))


def misused(text: str, private: frozenset[str]) -> list[str]:
    """The private parts of PySpark that a module reads or imports."""
    found = [f".{name}" for name in READ.findall(text) if name in private]
    if IMPORT.search(text) is None:
        return found
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            found += [name.name for name in node.names if is_private_module(name.name)]
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "pyspark":
            module = str(node.module)
            public = () if is_private_module(module) else importlib.import_module(module).__all__
            found += [f"{module}.{name.name}" for name in node.names if name.name not in public]
    return found


def is_private_module(name: str) -> bool:
    return name.split(".")[0] == "pyspark" and name not in PUBLIC


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("self._context.frame()", []),
        ("from pyspark.sql import DataFrame\nframe.schema", []),
        ("spark._jvm.java", ["._jvm"]),
        ("within._jsc.sc()", ["._jsc"]),
        ("frame._jdf.queryExecution()", ["._jdf"]),
        ("session._jsparkSession", ["._jsparkSession"]),
        ("SparkContext._gateway", ["._gateway"]),
        ("from pyspark import cloudpickle", ["pyspark.cloudpickle"]),
        ("from pyspark.util import local_connect_and_auth", ["pyspark.util.local_connect_and_auth"]),
        ("def late():\n    import pyspark.sql.pandas.types", ["pyspark.sql.pandas.types"]),
    ],
)
def test_private_parts_are_recognised(text: str, parts: list[str]) -> None:
    assert misused(text, private_names({"_context", "_jvm"})) == parts


def test_no_other_module_touches_what_pyspark_keeps_private() -> None:
    texts = {file: file.read_text() for file in modules()}
    private = private_names({name for text in texts.values() for name in OWN.findall(text)})
    examples = Path(__file__)
    found = {
        str(file.relative_to(ROOT)): parts for file, text in texts.items() if file != examples and (parts := misused(text, private))
    }
    assert found == {}, "move it behind a function of airflow_pipelines/engine/spark, and list it in docs/spark-internals.md"
