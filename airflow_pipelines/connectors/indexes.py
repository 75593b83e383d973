"""The index by which an output identifies rows that belong together."""

from __future__ import annotations

from collections.abc import Iterable

from airflow_pipelines.program.names import canonical, display
from airflow_pipelines.program.relations import Index
from airflow_pipelines.rows.formats.option_errors import InvalidOptionError


def key_columns(name: str | None, relation: str, indexes: Iterable[Index]) -> tuple[str, ...]:
    """Return the columns by which changes of an output are grouped; empty without an index.

    :param name: the index that the output names, quoted if it is case-sensitive
    :param relation: the canonical name of the output's table or view
    :param indexes: the indexes of the program
    :raises InvalidOptionError: if the relation has no such index
    """
    if name is None:
        return ()
    own = {index.name: index for index in indexes if index.relation == relation}
    chosen = own.get(canonical(name))
    if chosen is None:
        known = ", ".join(map(display, sorted(own))) or "none"
        of = display(relation)
        raise InvalidOptionError(
            f"{of} has no index {name!r}; its indexes: {known}. Declare one with CREATE INDEX {name} ON {of}(columns)", "index"
        )
    return chosen.columns
