"""Random columns whose values depend only on a row's number: any rows can be made again at any time, in any order."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Numbers = npt.NDArray[np.int64]

# The public-domain mixing function SplitMix64: three rounds of shift and multiply that spread every bit over all others.
_GAMMA = np.uint64(0x9E3779B97F4A7C15)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


_TEXT_ROWS = 100_000


@dataclass(frozen=True, slots=True)
class Draws:
    """Independent columns of random values for rows with the numbers ``rows`` (not negative).

    ``seed`` tells tables and data sets apart.
    """

    seed: str
    rows: Numbers

    def bits(self, column: str) -> npt.NDArray[np.uint64]:
        """64 random bits for each row."""
        salt = np.uint64(zlib.crc32(f"{self.seed}:{column}".encode()))
        with np.errstate(over="ignore"):
            mixed = (self.rows.astype(np.uint64) + (salt << np.uint64(32)) + salt) * _GAMMA
            mixed = (mixed ^ (mixed >> np.uint64(30))) * _FIRST
            mixed = (mixed ^ (mixed >> np.uint64(27))) * _SECOND
        return mixed ^ (mixed >> np.uint64(31))

    def integers(self, column: str, low: int, high: int) -> Numbers:
        """Uniform integers from ``low`` to ``high``, both included."""
        return (self.bits(column) % np.uint64(high - low + 1)).astype(np.int64) + low

    def chance(self, column: str, share: float) -> npt.NDArray[np.bool_]:
        """Draw True for about this share of the rows."""
        return (self.bits(column) >> np.uint64(11)).astype(np.float64) < share * 2.0**53

    def words(self, column: str, words: Sequence[str]) -> Any:
        """Draw words uniformly, as a pyarrow array."""
        return pick(words, self.integers(column, 0, len(words) - 1))

    def text(self, column: str, pool: bytes, shortest: int, longest: int) -> Any:
        """Pieces of ``pool`` (ASCII) with uniform place and length, as a pyarrow array."""
        lengths = self.integers(f"{column} length", shortest, longest)
        starts = self.integers(f"{column} start", 0, len(pool) - longest - 1)
        letters = np.frombuffer(pool, np.uint8)
        # The places of all letters of many rows would take more memory than the letters themselves.
        parts = range(0, max(1, len(lengths)), _TEXT_ROWS)
        return pa.concat_arrays([_pieces(letters, starts[at : at + _TEXT_ROWS], lengths[at : at + _TEXT_ROWS]) for at in parts])


def _pieces(letters: npt.NDArray[np.uint8], starts: Numbers, lengths: Numbers) -> Any:
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    places = np.arange(offsets[-1]) + np.repeat(starts - offsets[:-1], lengths)
    return pa.StringArray.from_buffers(len(lengths), pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(letters[places]))


def pick(words: Sequence[str], at: Numbers) -> Any:
    """``words[at]`` as a pyarrow array."""
    return pa.array(words).take(pa.array(at))


def hundredths(values: Numbers) -> Any:
    """Cents, percents and the like as DECIMAL(15, 2)."""
    # Arrow keeps decimals as 128-bit two's complement, low word first; dividing by 100 would be much slower.
    wide = np.empty((len(values), 2), np.int64)
    wide[:, 0] = values
    wide[:, 1] = values >> 63
    return pa.Array.from_buffers(pa.decimal128(15, 2), len(values), [None, pa.py_buffer(wide.tobytes())])


def dates(days: Numbers) -> Any:
    """Days since 1970-01-01 as DATE."""
    return pa.array(days.astype(np.int32)).cast(pa.date32())
