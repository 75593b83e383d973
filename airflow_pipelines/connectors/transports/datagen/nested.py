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
    """Arrays; the elements of each are numbered from 0.

    :param lengths: picks how many elements they have
    :param elements: makes them
    :param kind: the Arrow type
    """

    lengths: WholeNumbers
    elements: Maker
    kind: pa.DataType

    def make(self, rows: Rows, random: Random) -> pa.Array:
        """One array for each row."""
        offsets, places = _laid_out(self.lengths, rows, random)
        return pa.ListArray.from_arrays(pa.array(offsets), self.elements.make(places, random), type=self.kind)


@dataclass(frozen=True, slots=True)
class Binaries:
    """Binary values.

    :param lengths: picks how many bytes they have
    :param elements: makes the bytes
    :param least: shorter ones are filled up with zeros
    """

    lengths: WholeNumbers
    elements: Maker
    least: int

    def make(self, rows: Rows, random: Random) -> pa.Array:
        """One binary value for each row."""
        offsets, places = _laid_out(self.lengths, rows, random)
        data = self.elements.make(places, random).to_numpy(zero_copy_only=False).astype(np.uint8)
        values = pa.BinaryArray.from_buffers(pa.binary(), len(rows), [None, pa.py_buffer(offsets), pa.py_buffer(data)])
        return pa.array([value.ljust(self.least, b"\0") for value in values.to_pylist()], pa.binary()) if self.least else values


@dataclass(frozen=True, slots=True)
class Maps:
    """Maps.

    :param lengths: picks how many pairs they have, of which a second one with the same key is left out
    :param keys: makes keys
    :param items: makes values
    :param kind: the Arrow type
    """

    lengths: WholeNumbers
    keys: Maker
    items: Maker
    kind: pa.MapType

    def make(self, rows: Rows, random: Random) -> pa.Array:
        """One map for each row."""
        offsets, places = _laid_out(self.lengths, rows, random)
        keys, items = self.keys.make(places, random), self.items.make(places, random)
        if len(keys):
            kept = _first_of_each(keys, np.repeat(np.arange(len(rows)), np.diff(offsets)))
            offsets = np.searchsorted(kept, offsets).astype(np.int32)
            keys, items = keys.take(pa.array(kept)), items.take(pa.array(kept))
        return pa.MapArray.from_arrays(pa.array(offsets), keys, items, type=self.kind)


@dataclass(frozen=True, slots=True)
class Structs:
    """Structs.

    :param fields: what makes each field
    :param kind: the Arrow type
    """

    fields: tuple[Maker, ...]
    kind: pa.StructType

    def make(self, rows: Rows, random: Random) -> pa.Array:
        """One struct for each row."""
        return pa.StructArray.from_arrays([maker.make(rows, random) for maker in self.fields], fields=list(self.kind))


@dataclass(frozen=True, slots=True)
class Variants:
    """Variants.

    :param contents: makes the numbers or texts in them
    :param kind: the Arrow type
    """

    contents: Maker
    kind: pa.DataType

    def make(self, rows: Rows, random: Random) -> pa.Array:
        """One variant for each row."""
        made = self.contents.make(rows, random).to_pylist()
        return pa.array([None if value is None else variant.encode(_as_json(value)) for value in made], self.kind)


def _as_json(value: Any) -> Any:
    """A value as the JSON reader gives it: floating-point numbers are decimals there."""
    return Decimal(repr(value)) if isinstance(value, float) else value


def _laid_out(lengths: WholeNumbers, rows: Rows, random: Random) -> tuple[Offsets, Rows]:
    """Where the elements of each row's collection begin (and the last ends), and their numbers within their collections."""
    sizes = lengths.pick(rows, random)
    offsets = np.zeros(len(rows) + 1, np.int32)
    np.cumsum(sizes, out=offsets[1:])
    return offsets, np.arange(offsets[-1], dtype=np.int64) - np.repeat(offsets[:-1], sizes)


def _first_of_each(keys: pa.Array, maps: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The places of the keys that come for the first time in their map, in order."""
    try:
        codes = keys.dictionary_encode().indices.to_numpy()
    except (pa.ArrowNotImplementedError, AttributeError):
        known: dict[str, int] = {}
        codes = np.array([known.setdefault(repr(key), len(known)) for key in keys.to_pylist()])
    _, first = np.unique(maps * (int(codes.max()) + 1) + codes, return_index=True)
    return np.sort(first)
