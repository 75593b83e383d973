"""Readers of self-describing files that hold their rows in groups: Parquet, ORC, Avro."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol

import pyarrow as pa

from airflow_pipelines.connectors.base import ConnectorFailure
from airflow_pipelines.connectors.transports.files.readers import Growth
from airflow_pipelines.rows.formats.avro.rows import AvroRows
from airflow_pipelines.rows.formats.parquet import open_parquet
from airflow_pipelines.rows.formats.parsed import Parsed, RecordError, RecordProblem
from airflow_pipelines.rows.formats.tables import TableParser

_AVRO_ROWS: Final = 20_000
"""The approximate number of rows of an Avro file that are read at a time, since its blocks are small."""


class UnreadableError(Exception):
    """The error for a file that is not of its format, or not complete."""


class RowGroups(Protocol):
    """The rows of an open file, in groups."""

    def read(self, number: int) -> tuple[pa.Table, int] | None:
        """Return the rows of a group and the number of the next group, or None after the last. Called with growing numbers.

        :raises UnreadableError: when the file is damaged, or not complete
        """


class GroupReader:
    """A reader of a file, group by group."""

    def __init__(
        self,
        file: Any,
        open_groups: Callable[[Any], RowGroups],
        parser: TableParser,
        place: Mapping[str, Any],
        growth: Growth = Growth.NONE,
    ) -> None:
        """Make a reader that starts at a place.

        :param file: the file, which can be read in any order
        :param open_groups: a function that opens it as a file of its format
        :param parser: the parser of the rows
        :param place: the place to start at, as :meth:`place` returned it
        :param growth: the changes that may still happen to the file
        """
        self.done = False
        self._file = file
        self._open_groups = open_groups
        self._parser = parser
        self._growth = growth
        self._index = int(place.get("offset", 0))
        self._group = int(place.get("group", 0))
        # Earlier releases kept only the row of the file.
        self._row = int(place.get("row", 0 if "group" in place else self._index))
        self._groups: RowGroups | None = None
        self._current: tuple[pa.Table, int] | None = None
        self._damage: UnreadableError | None = None

    def read(self, max_records: int) -> tuple[Parsed, int] | None:
        """Return the next rows and their size in bytes, or None while the end of the file may be missing."""
        try:
            table = self._next_rows(max_records)
        except UnreadableError as error:
            if self._growth is Growth.ARRIVING:
                return None
            self.done = True
            problem = RecordError(self._index, f"{error}")
            return Parsed(None, 0, (problem,), 1, 0, self._index), 0
        parsed = self._parser.parse_table(table, self._index)
        self._index += table.num_rows
        return parsed, table.nbytes

    def place(self) -> dict[str, Any]:
        """Return the place where reading goes on: the group, the row in it, and the row of the file."""
        return {"offset": self._index, "group": self._group, "row": self._row}

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _next_rows(self, max_records: int) -> pa.Table:
        if self._damage is not None:
            raise self._damage
        if self._groups is None:
            self._groups = self._open_groups(self._file)
        current = self._current = self._current or self._groups.read(self._group)
        while current is not None and self._row >= current[0].num_rows:
            self._row -= current[0].num_rows
            self._group = current[1]
            current = self._current = self._groups.read(self._group)
        if current is None:
            self.done = True
            return pa.table({})
        rows = current[0].slice(self._row, max_records)
        self._row += rows.num_rows
        if self._row == current[0].num_rows:
            self._row, self._group = 0, current[1]
            self._current = None
            self.done = self._is_last(self._groups)
        return rows

    def _is_last(self, groups: RowGroups) -> bool:
        """Return True if there are no more rows. Damage is kept for the next read, so that it comes after the rows before it."""
        try:
            self._current = groups.read(self._group)
        except UnreadableError as error:
            self._damage = error
            return False
        return self._current is None


class ParquetGroups:
    """The row groups of a Parquet file."""

    def __init__(self, file: Any) -> None:
        """Read the footer of a file, which describes its contents.

        :raises UnreadableError: when that is not there
        """
        try:
            self._file = open_parquet(file)
        except (pa.ArrowInvalid, OSError) as error:
            raise _unreadable("Parquet", error) from error

    def read(self, number: int) -> tuple[pa.Table, int] | None:
        """Return the rows of a group and the number of the next group, or None after the last."""
        if number >= self._file.metadata.num_row_groups:
            return None
        try:
            return self._file.read_row_group(number), number + 1
        except (pa.ArrowInvalid, OSError) as error:
            raise _unreadable("Parquet", error) from error


class OrcGroups:
    """The stripes of an ORC file."""

    def __init__(self, file: Any) -> None:
        """Read the footer of a file, which describes its contents.

        :raises UnreadableError: when that is not there
        """
        from pyarrow import orc

        try:
            self._file = orc.ORCFile(file)
        except (pa.ArrowInvalid, OSError) as error:
            raise _unreadable("ORC", error) from error

    def read(self, number: int) -> tuple[pa.Table, int] | None:
        """Return the rows of a stripe and the number of the next stripe, or None after the last."""
        if number >= self._file.nstripes:
            return None
        try:
            return pa.Table.from_batches([self._file.read_stripe(number)]), number + 1
        except (pa.ArrowInvalid, OSError) as error:
            raise _unreadable("ORC", error) from error


class AvroGroups:
    """The blocks of an Avro object container file, some thousand rows at a time."""

    def __init__(self, file: Any) -> None:
        """Read the beginning of a file, which has its schema.

        :raises UnreadableError: when it is not there, or has types that tables do not have
        :raises ConnectorFailure: when the library for Avro is missing
        """
        try:
            from fastavro import block_reader
        except ImportError as error:
            raise ConnectorFailure("Avro needs fastavro: pip install 'airflow-pipelines[avro]'") from error
        try:
            self._blocks = block_reader(file)
            self._rows = AvroRows(self._blocks.writer_schema)
        except RecordProblem as problem:
            raise UnreadableError(f"its schema cannot be read as rows: {problem}") from problem
        except OSError as error:
            raise _unreadable("Avro", error) from error
        except Exception as error:
            # fastavro has no common class for what is wrong with a file.
            raise UnreadableError(f"not an Avro file: {error}") from error
        self._next = 0
        self._damage: UnreadableError | None = None

    def read(self, number: int) -> tuple[pa.Table, int] | None:
        """Return the rows of the blocks from ``number`` on and the number of the next block, or None after the last."""
        records: list[Any] = []
        while len(records) < _AVRO_ROWS and self._damage is None:
            try:
                block = next(self._blocks, None)
                if block is None:
                    break
                self._next += 1
                if self._next > number:
                    records.extend(list(block))
            except OSError as error:
                raise _unreadable("Avro", error) from error
            except Exception as error:  # noqa: BLE001 - fastavro has no common class for what is wrong with a file
                self._damage = UnreadableError(f"the Avro file is damaged after block {self._next}: {error}")
        if records:
            return self._rows.table(records), self._next
        if self._damage is not None:
            raise self._damage
        return None


GROUPED: Final[Mapping[str, Callable[[Any], RowGroups]]] = {"avro": AvroGroups, "orc": OrcGroups, "parquet": ParquetGroups}
"""The functions that open files of self-describing formats, by format."""


def _unreadable(kind: str, error: Exception) -> UnreadableError:
    """Return the error for a damaged file. An error of the machine, which has an error number, is raised as it is."""
    if isinstance(error, OSError) and error.errno is not None:
        raise error
    return UnreadableError(f"not a complete {kind} file: {error}")
