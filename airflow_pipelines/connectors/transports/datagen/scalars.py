"""Makers of numbers, truth values, points in time and UUIDs."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from airflow_pipelines.connectors.transports.datagen.draws import FloatingNumbers, Random, Rows, WholeNumbers

_HEX = np.frombuffer(b"0123456789abcdef", np.uint8)
_HYPHENS = frozenset({8, 13, 18, 23})
_DIGITS = np.array([place for place in range(36) if place not in _HYPHENS])


@dataclass(frozen=True, slots=True)
class Factor:
    """A factor for whole numbers; products beyond the range of a type wrap around to its other end.

    :param factor: the factor
    :param least: the least number of the type
    :param most: the greatest number of the type
    """

    factor: int | float
    least: int
    most: int

    def times(self, numbers: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return the products, without fractions."""
        if self.factor == 1 or not len(numbers):
            return numbers
        farthest = max(abs(int(numbers.max())), abs(int(numbers.min()))) * abs(self.factor)
        if farthest <= self.most and self.least < 0:
            return numbers * self.factor if isinstance(self.factor, int) else np.trunc(numbers * self.factor).astype(np.int64)
        exact, span = Decimal(str(self.factor)), self.most - self.least + 1
        products = ((int(int(number) * exact) - self.least) % span + self.least for number in numbers)
        return np.fromiter(products, np.int64 if self.least >= -(2**63) and self.most < 2**63 else object, len(numbers))


@dataclass(frozen=True, slots=True)
class Integers:
    """A maker of integers.

    :param numbers: the picker of the numbers
    :param kind: an Arrow type of integers
    :param factor: the factor for the numbers
    """

    numbers: WholeNumbers
    kind: pa.DataType
    factor: Factor

    def make(self, rows: Rows, random: Random) -> pa.Array:
        """Make a number for each row."""
        numbers = self.factor.times(self.numbers.pick(rows, random))
        return pa.array(numbers.astype(self.kind.to_pandas_dtype()))


@dataclass(frozen=True, slots=True)
class Decimals:
    """A maker of decimals, and of integers stored as such, from their digits without the point.

    :param numbers: the picker of the digits
    :param kind: a decimal Arrow type
    :param factor: the factor for the digits
    """

    numbers: WholeNumbers
    kind: pa.Decimal128Type
    factor: Factor

    def make(self, rows: Rows, random: Random) -> pa.Array:
        """Make a number for each row."""
        numbers = self.factor.times(self.numbers.pick(rows, random))
        if numbers.dtype == object:
            return pa.array([Decimal(number).scaleb(-self.kind.scale) for number in numbers.tolist()], self.kind)
        words = np.empty((len(numbers), 2), np.int64)
        words[:, 0] = numbers
        words[:, 1] = numbers >> 63
        return pa.Array.from_buffers(self.kind, len(numbers), [None, pa.py_buffer(words)])


@dataclass(frozen=True, slots=True)
class Floats:
    """A maker of floating-point numbers.

    :param numbers: the picker of the numbers
    :param kind: an Arrow type of floating-point numbers
    """

    numbers: FloatingNumbers
    kind: pa.DataType

    def make(self, rows: Rows, random: Random) -> pa.Array:
        """Make a number for each row."""
        with np.errstate(over="ignore"):
            return pa.array(self.numbers.pick(rows, random).astype(self.kind.to_pandas_dtype()))


@dataclass(frozen=True, slots=True)
class Booleans:
    """A maker of booleans: True for odd numbers.

    :param numbers: the picker of the numbers
    """

    numbers: WholeNumbers

    def make(self, rows: Rows, random: Random) -> pa.Array:
        """Make a boolean for each row."""
        return pa.array(self.numbers.pick(rows, random) % 2 == 1)


@dataclass(frozen=True, slots=True)
class Temporals:
    """A maker of dates, times, timestamps and intervals from the number that stores them.

    :param numbers: the picker of the number of units from zero
    :param kind: an Arrow type of four or eight bytes
    :param unit: the size of a unit, in the units of the type
    """

    numbers: WholeNumbers
    kind: pa.DataType
    unit: int

    def make(self, rows: Rows, random: Random) -> pa.Array:
        """Make a point in time for each row."""
        stored = np.int32 if self.kind.bit_width == 32 else np.int64
        return pa.array((self.numbers.pick(rows, random) * self.unit).astype(stored)).view(self.kind)


@dataclass(frozen=True, slots=True)
class UuidsOfNumbers:
    """A maker of UUIDs that are numbers.

    :param numbers: the picker of the numbers
    """

    numbers: WholeNumbers

    def make(self, rows: Rows, random: Random) -> pa.Array:
        """Make a UUID for each row."""
        raw = np.zeros((len(rows), 16), np.uint8)
        raw[:, 8:] = self.numbers.pick(rows, random).astype(">i8").view(np.uint8).reshape(-1, 8)
        return _uuid_texts(raw)


@dataclass(frozen=True, slots=True)
class RandomUuids:
    """A maker of UUIDs of version 4."""

    def make(self, rows: Rows, random: Random) -> pa.Array:
        """Make a UUID for each row."""
        raw = np.frombuffer(random.bytes(16 * len(rows)), np.uint8).reshape(-1, 16).copy()
        raw[:, 6] = raw[:, 6] & 0x0F | 0x40
        raw[:, 8] = raw[:, 8] & 0x3F | 0x80
        return _uuid_texts(raw)


def _uuid_texts(raw: npt.NDArray[Any]) -> pa.Array:
    texts = np.full((len(raw), 36), ord("-"), np.uint8)
    digits = np.empty((len(raw), 32), np.uint8)
    digits[:, 0::2], digits[:, 1::2] = _HEX[raw >> 4], _HEX[raw & 15]
    texts[:, _DIGITS] = digits
    offsets = np.arange(len(raw) + 1, dtype=np.int32) * 36
    return pa.StringArray.from_buffers(len(raw), pa.py_buffer(offsets), pa.py_buffer(texts))
