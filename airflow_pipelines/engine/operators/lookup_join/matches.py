"""Known rows of a join and the stored rows that match them, as columns that are built on demand."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from airflow_pipelines.engine.batch import Batch
from airflow_pipelines.engine.execution.ways import Budget
from airflow_pipelines.engine.lookup.index import Keys, Pairs, file_index, memory_index
from airflow_pipelines.rows.arrow import cast_to_schema
from airflow_pipelines.rows.zsets import WEIGHT
from airflow_pipelines.sql.plan.ir.join_graph import SourceColumn

_VALUES_AT_A_TIME = 1 << 16
"""The number of values after which their bytes are counted, before they exceed the memory or one array of texts."""


def known_name(column: SourceColumn) -> str:
    """Return the name of a source's column in a table of known rows."""
    alias, name = column
    return f"{alias}.{name}"


@dataclass(frozen=True, slots=True)
class Matches:
    """Known rows with the matching stored rows of one more source.

    :param known: the columns of known rows by :func:`known_name`, and the weight
    :param pairs: the pairs of rows of ``known`` and matching stored rows, batch by batch
    :param types: the types of the columns of the source that was looked up, by :func:`known_name`
    :param columns: the names under which these columns are stored
    """

    known: pa.Table
    pairs: Sequence[Pairs]
    types: Mapping[str, pa.DataType]
    columns: Mapping[str, str]

    @property
    def rows(self) -> int:
        """The number of pairs."""
        return sum(len(part.asked) for part in self.pairs)

    def column(self, name: str) -> pa.ChunkedArray:
        """Return a column of either side, with one value for each pair.

        :param name: see :func:`known_name`
        """
        return pa.chunked_array(list(self._pieces(name)), self._kind(name))

    def weights(self) -> pa.ChunkedArray:
        """Return the product of the weights of each pair.

        :raises ArrowInvalid: if one is too large for its type
        """
        stored = [chunk for part in self.pairs for chunk in _take(part.column(WEIGHT), part.stored)]
        return pc.multiply_checked(self.column(WEIGHT), pa.chunked_array(stored, pa.int64()))

    def where(self, mask: npt.NDArray[np.bool_]) -> Matches:
        """Return the pairs for which a mask is true."""
        kept, at = [], 0
        for part in self.pairs:
            here = mask[at : at + len(part.asked)]
            kept.append(Pairs(part.asked[here], part.stored[here], part.column))
            at += len(part.asked)
        return replace(self, pairs=kept)

    def at(self, places: npt.NDArray[np.int64]) -> Matches:
        """Return the pairs at some places.

        :param places: the places in order, each once
        """
        mask = np.zeros(self.rows, dtype=bool)
        mask[places] = True
        return self.where(mask)

    def table(self, names: Iterable[str], budget: Budget) -> pa.Table:
        """Return some columns of either side, and the weight, as known rows.

        :raises TooMuch: if they take more bytes than allowed
        """
        return pa.table({**self.take(names, budget), WEIGHT: self.weights()})

    def take(self, names: Iterable[str], budget: Budget) -> dict[str, pa.ChunkedArray]:
        """Return some columns of either side by :func:`known_name`.

        :param names: the names
        :param budget: the bytes that the columns may take
        :raises TooMuch: if together they take more
        """
        columns: dict[str, pa.ChunkedArray] = {}
        for name in names:
            chunks = []
            for chunk in self._pieces(name):
                budget.spend(chunk.nbytes)
                chunks.append(chunk)
            columns[name] = pa.chunked_array(chunks, self._kind(name))
        return columns

    def _kind(self, name: str) -> pa.DataType:
        return self.types[name] if name in self.types else self.known.schema.field(name).type

    def _pieces(self, name: str) -> Iterator[pa.Array]:
        if name not in self.types:
            yield from _take(self.known[name], np.concatenate([np.zeros(0, np.int64), *(part.asked for part in self.pairs)]))
            return
        schema = pa.schema([(name, self.types[name])])
        for part in self.pairs:
            for chunk in _take(part.column(self.columns[name]), part.stored):
                # Files have other names and types inside of nested values.
                yield from cast_to_schema(pa.table([chunk], [name]), schema)[name].chunks


def _take(column: pa.ChunkedArray, places: npt.NDArray[np.int64]) -> Iterator[pa.Array]:
    for at in range(0, len(places), _VALUES_AT_A_TIME):
        yield from column.take(pa.array(places[at : at + _VALUES_AT_A_TIME])).chunks


def matching_pairs(batches: Iterable[Batch], keys: pa.Table, most: int) -> list[Pairs]:
    """Return the pairs of keys and equal stored rows.

    :param batches: the batches to search
    :param keys: the keys, none of which has a NULL; see :class:`~airflow_pipelines.engine.lookup.index.Keys`
    :param most: the maximum number of pairs
    :raises TooMuch: if there are more than ``most``
    """
    asked, budget = Keys.of(keys), Budget(most)
    return [part for batch in batches if batch.rows and keys.num_rows for part in _find_in_batch(batch, asked, budget)]


def _find_in_batch(batch: Batch, keys: Keys, budget: Budget) -> Iterable[Pairs]:
    if batch.table is not None:
        yield memory_index.pairs(batch.number, batch.table, keys, budget)
    elif batch.store is not None:
        index = file_index(batch.store)
        for file in batch.files:
            yield index.pairs(file, keys, budget)
