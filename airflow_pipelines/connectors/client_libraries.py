"""The check that the libraries that a connector or a format needs besides this package are installed."""

from __future__ import annotations

from importlib.util import find_spec

from airflow_pipelines.connectors.definition import ConnectorDefinition
from airflow_pipelines.rows.formats.definition import FormatDefinition


def missing_libraries(definition: ConnectorDefinition | FormatDefinition) -> str | None:
    """Return a message about missing libraries of a connector or a format, with a remedy; None if none is missing.

    :param definition: the definition of the connector or format
    """
    missing = [package for package in definition.packages if not _is_installed(package)]
    if not missing:
        return None
    of = f"{'format' if isinstance(definition, FormatDefinition) else 'transport'} {definition.name!r}"
    how = f"pip install 'airflow-pipelines[{definition.extra}]'" if definition.extra else f"install {', '.join(missing)}"
    return f"{of} needs a package that is not installed where the pipeline runs ({', '.join(missing)}); {how}"


def _is_installed(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except ModuleNotFoundError:
        return False
