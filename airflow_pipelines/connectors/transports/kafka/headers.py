"""Headers of records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from airflow_pipelines.connectors.transports.kafka.record import Record

Headers: TypeAlias = Sequence[tuple[str, str | bytes | None]]


def headers_of(record: Record) -> Headers:
    """The headers of a record.

    :param record: as its consumer has it
    """
    headers = record.headers()
    return list(headers.items()) if isinstance(headers, dict) else headers or ()


class HeaderFilter:
    """Tells by their headers which records are wanted."""

    def __init__(self, wanted: Mapping[str, str | tuple[str, ...] | None]) -> None:
        """Make a filter.

        :param wanted: what each record has to have: by name a value, several of which one has to be there, or None for any
        """
        self._wanted = {name: _values(value) for name, value in wanted.items()}

    def accepts(self, headers: Headers) -> bool:
        """Whether a record is wanted.

        :param headers: of the record; a name may be there more than once
        """
        given = [(name, value.encode() if isinstance(value, str) else value) for name, value in headers]
        return all(
            any(name == other and (values is None or value in values) for other, value in given)
            for name, values in self._wanted.items()
        )


def _values(value: str | tuple[str, ...] | None) -> frozenset[bytes] | None:
    if value is None:
        return None
    return frozenset(each.encode() for each in ((value,) if isinstance(value, str) else value))
