"""The pages of the connectors name the options that connectors and formats have, and these are read by somebody."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest
from pydantic import BaseModel

from airflow_pipelines.connectors.built_in import BUILT_IN_FORMATS, BUILT_IN_INPUTS, BUILT_IN_OUTPUTS
from airflow_pipelines.connectors.common_options import ConnectorOptions
from airflow_pipelines.connectors.registry import find_connector, find_format
from airflow_pipelines.connectors.transports.datagen.options import FieldOptions, PlanOptions
from airflow_pipelines.systems.kafka.properties import CONSUMER_PROPERTIES, PRODUCER_PROPERTIES, SHARED_PROPERTIES

ROOT: Final = Path(__file__).parents[2]
PAGES: Final = [ROOT / "docs" / name for name in ("connectors.md", "delta.md", "iceberg.md", "kafka.md", "postgresql.md")]
_NAME: Final = re.compile(r"`([^`]+)`")
_SHARED: Final = {"iceberg": "Which table", "postgres": "The connection"}
"""Headings of sections about options that several connectors have, by how the names of these begin."""
_PROPERTIES: Final = SHARED_PROPERTIES | CONSUMER_PROPERTIES | PRODUCER_PROPERTIES
_GATHERED: Final = frozenset({"properties"})
"""Options that a model gathers from others."""
_OF_CATALOG: Final = re.compile(r"(rest|sql|glue|s3|gcs|adls|hdfs|hf)\.")
"""Options that are gathered so."""


def _sections() -> Iterator[tuple[str, str]]:
    """Yield each heading with the text until the next heading of the same or a higher level."""
    for page in PAGES:
        text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
        marks = list(re.finditer(r"^(#+) (.*)$", text, re.MULTILINE))
        for at, mark in enumerate(marks):
            ends = (after.start() for after in marks[at + 1 :] if len(after[1]) <= len(mark[1]))
            yield mark[2], text[mark.end() : next(ends, len(text))]


def _listed(text: str, header: str) -> dict[str, str]:
    """The names in the first column of the tables with a header, with what is said of them."""
    tables = [table.splitlines() for table in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE)]
    rows = [row.partition(" | ") for first, _, *rows in tables if first.startswith(f"| {header} |") for row in rows]
    return {name: said for names, _, said in rows for name in _NAME.findall(names) if not _OF_CATALOG.match(name)}


@dataclass(frozen=True)
class _Options:
    """Something that has options.

    :param model: of the options
    :param headings: of the sections that are about them: their own, and those of options that several have
    :param borrowed: headings of sections about others' options, some of which it has
    :param header: the first column's header in the tables of these options
    :param passed_on: options that are a client's, whose pages say what they mean
    """

    model: type[BaseModel]
    headings: frozenset[str]
    borrowed: frozenset[str] = frozenset()
    header: str = "option"
    passed_on: frozenset[str] = frozenset()

    @property
    def names(self) -> dict[str, str]:
        """The names in Python of those that are to be on a page, by what they are called there."""
        names = {field.alias or name: name for name, field in self.model.model_fields.items()}
        return {name: names[name] for name in names.keys() - _GATHERED}

    @property
    def listed(self) -> dict[str, str]:
        """Return the rows of the pages' tables by option."""
        return {name: said for text in self._texts(self.headings) for name, said in _listed(text, self.header).items()}

    @property
    def written(self) -> set[str]:
        """All that its sections name."""
        return {name for text in self._texts(self.headings | self.borrowed) for name in _NAME.findall(text)}

    @staticmethod
    def _texts(headings: frozenset[str]) -> list[str]:
        return [text for heading, text in _sections() if heading in headings]


def _all() -> Iterator[tuple[str, _Options]]:
    yield "every connector", _Options(ConnectorOptions, frozenset({"Options of every connector"}))
    yield "a plan of datagen", _Options(PlanOptions, frozenset({"datagen"}), header="option of a plan")
    yield "a column of datagen", _Options(FieldOptions, frozenset({"datagen"}), header="setting")
    for name in sorted({*BUILT_IN_INPUTS, *BUILT_IN_OUTPUTS}):
        definition = find_connector(name)
        assert definition is not None
        shared = {heading for of, heading in _SHARED.items() if name.startswith(of)}
        passed_on = _PROPERTIES if name.startswith("kafka") else frozenset()
        yield name, _Options(definition.options, frozenset({name, *shared}), passed_on=passed_on)
    for name in sorted(BUILT_IN_FORMATS):
        found = find_format(name)
        assert found is not None
        yield name, _Options(found.options, frozenset({name}), frozenset({"avro"} if name == "protobuf" else ()))


OPTIONS: Final = dict(_all())


@pytest.mark.parametrize("name", OPTIONS)
def test_pages_name_the_options_that_there_are(name: str) -> None:
    options = OPTIONS[name]
    assert options.listed.keys() - options.names.keys() == set(), "options that there are not"
    assert options.names.keys() - options.written - options.passed_on == set(), "options that no page names"


@functools.cache
def _read() -> frozenset[str]:
    """Find the attributes that the rooms of rows, connectors and hosts read, and the names that they ask for."""
    folders = [ROOT / "airflow_pipelines" / room for room in ("rows", "connectors", "host")]
    nodes = [node for folder in folders for path in folder.rglob("*.py") for node in ast.walk(ast.parse(path.read_text()))]
    attributes = {node.attr for node in nodes if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load)}
    keys = {key.value for node in nodes if isinstance(node, ast.Dict) for key in node.keys if isinstance(key, ast.Constant)}
    return frozenset({*attributes, *keys})


@pytest.mark.parametrize("name", OPTIONS)
def test_options_have_an_effect_or_a_page_says_that_they_have_none(name: str) -> None:
    options = OPTIONS[name]
    unread = {shown for shown, field in options.names.items() if field not in _read()} - options.passed_on
    assert unread == {shown for shown, said in options.listed.items() if "without effect" in said}
