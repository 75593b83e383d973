"""Connectors of other packages: one is installed, found by its entry point, and passes the suite; what is wrong with others."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from airflow_pipelines.connectors import lookup, registry
from airflow_pipelines.connectors.registry import connector_names, find_connector
from airflow_pipelines.connectors.validation import validate
from airflow_pipelines.program.connectors import Connector, ConnectorDirection
from airflow_pipelines.rows.formats.option_errors import InvalidOptionError, UnknownOptionError
from tests.connectors.conformance.outputs import VIEW, OutputCase, OutputConformance
from tests.connectors.conformance.sqlite_case import SqliteCase
from tests.connectors.relations import col, relation


@pytest.mark.usefixtures("sqlite_connector")
@pytest.mark.core
class TestSqliteOutput(OutputConformance):
    @pytest.fixture
    def case(self, tmp_path: Path, sqlite_connector: None, monkeypatch: pytest.MonkeyPatch) -> OutputCase:
        assert find_connector("sqlite_output") is not None
        monkeypatch.setattr("sqlite_connector.BUSY_S", 0.05)
        return SqliteCase(tmp_path)


@pytest.mark.core
@pytest.mark.usefixtures("sqlite_connector")
def test_its_names_and_refusals_are_those_of_any_connector() -> None:
    assert "sqlite_output" in connector_names(ConnectorDirection.OUTPUT)
    declared = Connector("v", "out", ConnectorDirection.OUTPUT, "sqlite_outputs", {"path": "x"})
    with pytest.raises(UnknownOptionError, match=r"known transports: .*sqlite_output.*did you mean 'sqlite_output'"):
        validate(declared, VIEW)
    declared = replace(declared, transport="sqlite_output", options={"index": "by_key"})
    with pytest.raises(InvalidOptionError, match="option 'table' of transport 'sqlite_output' is missing"):
        validate(declared, VIEW)
    declared = replace(declared, transport_config={"path": "x", "table": "t"})
    with pytest.raises(InvalidOptionError, match=r"connector 'v\.out': sqlite_output cannot write column 'd' of type DATE"):
        validate(declared, relation(col("d", "DATE"), name="v"))


class _Distribution:
    def __init__(self, name: str) -> None:
        self.name = name


def points(*found: tuple[str, str, str]) -> list[EntryPoint]:
    """Entry points of packages: the package, the name, and what it names."""
    made = []
    for package, name, value in found:
        point = EntryPoint(name, value, registry.CONNECTORS_OF_OTHERS)
        vars(point).update(dist=_Distribution(package))
        made.append(point)
    return made


@pytest.mark.parametrize(
    ("declared", "message"),
    [
        (
            [("a", "odd_output", "json:dumps")],
            "'odd_output' of the package a is to be an InputDefinition or OutputDefinition",
        ),
        ([("a", "odd_output", "tests.connectors.targets:PLAIN_OUTPUT")], "of that name, and is one named 'plain_test_output'"),
        (
            [("a", "odd_output", "no_such_module:X")],
            "package a cannot be loaded from 'no_such_module:X': ModuleNotFoundError",
        ),
        ([("a", "odd_output", "a:X"), ("b", "odd_output", "b:X")], r"several installed packages \(a, b\); uninstall all but one"),
    ],
)
def test_packages_that_are_wrong(declared: list[tuple[str, str, str]], message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    given = points(*declared)
    monkeypatch.setattr(lookup, "entry_points", lambda group, name=None: [point for point in given if name in (None, point.name)])
    with pytest.raises(UnknownOptionError, match=message):
        find_connector("odd_output")
    # Whoever has misspelt another name is told what there is all the same.
    with pytest.raises(UnknownOptionError, match=r"unknown transport 'file_outptu'; known transports: .*file_output"):
        validate(Connector("v", "out", ConnectorDirection.OUTPUT, "file_outptu"), VIEW)


def test_connectors_of_this_package_come_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lookup, "entry_points", lambda group, name=None: points(("a", "null_output", "no_such_module:X")))
    found = find_connector("null_output")
    assert found is not None
    assert found.name == "null_output"


@pytest.mark.processes
def test_no_client_library_is_imported_before_a_connector_is_opened() -> None:
    text = (
        "import sys\n"
        "from airflow_pipelines.connectors.registry import connector_names, find_connector, format_names, find_format\n"
        "from airflow_pipelines.program.connectors import ConnectorDirection\n"
        "for name in {name for direction in ConnectorDirection for name in connector_names(direction)}: find_connector(name)\n"
        "for name in format_names(): find_format(name)\n"
        "libraries = ['confluent_kafka', 'deltalake', 'pyiceberg', 'psycopg', 'redis', 'fastavro', 's3fs', 'botocore', 'airflow']\n"
        "libraries.append('google.protobuf')\n"
        "print(*sorted(name for name in libraries if name in sys.modules))\n"
    )
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.split() == []
