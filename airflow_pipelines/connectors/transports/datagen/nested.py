"""Makers of arrays, binary values, maps, structs and variants."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from airflow_pipelines.connectors.transports.datagen.draws import Random, Rows, WholeNumbers
from airflow_pipelines.connectors.transports.datagen.makers import Maker
from airflow_pipelines.rows.formats import variant

Offsets = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Arrays:
    """A maker of arrays; the elements of each are numbered from 0.

    :param lengths: the picker of the number of elements
    :param elements: the maker of the elements
    :param kind: the Arrow type
    """

    lengths: WholeNumbers
    elements: Maker
    kind: pa.DataType

    def make(self, rows: Rows, random: Random) -> pa.Array:
        """Make an array for each row."""
        offsets, places = _lay_out(self.lengths, rows, random)
        return pa.ListArray.from_arrays(pa.array(offsets), self.elements.make(places, random), type=self.kind)


@dataclass(frozen=True, slots=True)
class Binaries:
    """A maker of binary values.

    :param lengths: the picker of the number of bytes
    :param elements: the maker of the bytes
    :param least: the minimum number of bytes; shorter values are padded with zeros
    """

    lengths: WholeNumbers
    elements: Maker
    least: int

    def make(self, rows: Rows, random: Random) -> pa.Array:
        """Make a binary value for each row."""
        offsets, places = _lay_out(self.lengths, rows, random)
        data = self.elements.make(places, random).to_numpy(zero_copy_only=False).astype(np.uint8)
        values = pa.BinaryArray.from_buffers(pa.binary(), len(rows), [None, pa.py_buffer(offsets), pa.py_buffer(data)])
        return pa.array([value.ljust(self.least, b"\0") for value in values.to_pylist()], pa.binary()) if self.least else values


@dataclass(frozen=True, slots=True)
class Maps:
    """A maker of maps.

    :param lengths: the picker of the number of pairs; pairs that repeat a key are then left out
    :param keys: the maker of keys
    :param items: the maker of values
    :param kind: the Arrow type
    """

    lengths: WholeNumbers
    keys: Maker
    items: Maker
    kind: pa.MapType

    def make(self, rows: Rows, random: Random) -> pa.Array:
        """Make a map for each row."""
        offsets, places = _lay_out(self.lengths, rows, random)
        keys, items = self.keys.make(places, random), self.items.make(places, random)
        if len(keys):
            kept = _find_first_of_each(keys, np.repeat(np.arange(len(rows)), np.diff(offsets)))
            offsets = np.searchsorted(kept, offsets).astype(np.int32)
            keys, items = keys.take(pa.array(kept)), items.take(pa.array(kept))
        return pa.MapArray.from_arrays(pa.array(offsets), keys, items, type=self.kind)


@dataclass(frozen=True, slots=True)
class Structs:
    """A maker of structs.

    :param fields: the maker of each field
    :param kind: the Arrow type
    """

    fields: tuple[Maker, ...]
    kind: pa.StructType

    def make(self, rows: Rows, random: Random) -> pa.Array:
        """Make a struct for each row."""
        return pa.StructArray.from_arrays([maker.make(rows, random) for maker in self.fields], fields=list(self.kind))


@dataclass(frozen=True, slots=True)
class Variants:
    """A maker of variants.

    :param contents: the maker of the numbers or texts in them
    :param kind: the Arrow type
    """

    contents: Maker
    kind: pa.DataType

    def make(self, rows: Rows, random: Random) -> pa.Array:
        """Make a variant for each row."""
        made = self.contents.make(rows, random).to_pylist()
        return pa.array([None if value is None else variant.encode(_as_json(value)) for value in made], self.kind)


def _as_json(value: Any) -> Any:
    """Return a value as the JSON reader gives it, with floating-point numbers as decimals."""
    return Decimal(repr(value)) if isinstance(value, float) else value


def _lay_out(lengths: WholeNumbers, rows: Rows, random: Random) -> tuple[Offsets, Rows]:
    """Return the offsets of the collections of all rows, and the numbers of the elements within their collections."""
    sizes = lengths.pick(rows, random)
    offsets = np.zeros(len(rows) + 1, np.int32)
    np.cumsum(sizes, out=offsets[1:])
    return offsets, np.arange(offsets[-1], dtype=np.int64) - np.repeat(offsets[:-1], sizes)


def _find_first_of_each(keys: pa.Array, maps: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the indices of the keys that are the first of their kind in their map, in order."""
    try:
        codes = keys.dictionary_encode().indices.to_numpy()
    except (pa.ArrowNotImplementedError, AttributeError):
        known: dict[str, int] = {}
        codes = np.array([known.setdefault(repr(key), len(known)) for key in keys.to_pylist()])
    _, first = np.unique(maps * (int(codes.max()) + 1) + codes, return_index=True)
    return np.sort(first)
