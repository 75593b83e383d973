"""Makers of strings."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from airflow_pipelines.connectors.transports.datagen.draws import MOST, Random, Rows, WholeNumbers
from airflow_pipelines.connectors.transports.datagen.fake_texts import FakeTexts

_LETTERS = np.frombuffer(b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz", np.uint8)


@dataclass(frozen=True, slots=True)
class NumberTexts:
    """A maker of numbers as texts.

    Texts that are too short get zeros in front, and those that are too long lose their first digits.

    :param step: the step from one number to the next
    :param shortest: the minimum length
    :param longest: the maximum length
    """

    step: int | float
    shortest: int
    longest: int

    def make(self, rows: Rows, random: Random) -> pa.Array:
        """Make a text for each row."""
        numbers = WholeNumbers(0, MOST, step=self.step).pick(rows, random)
        texts = pc.cast(pa.array(numbers.astype(np.int64)), pa.string())
        if self.shortest > 1:
            texts = pc.utf8_lpad(texts, self.shortest, "0")
        if self.longest == 0:
            return pc.utf8_slice_codeunits(texts, 0, 0)
        return pc.utf8_slice_codeunits(texts, -self.longest) if self.longest < len(str(MOST)) else texts


@dataclass(frozen=True, slots=True)
class RandomTexts:
    """A maker of random letters and digits.

    :param lengths: the picker of the number of characters
    """

    lengths: WholeNumbers

    def make(self, rows: Rows, random: Random) -> pa.Array:
        """Make a text for each row."""
        offsets = np.zeros(len(rows) + 1, np.int32)
        np.cumsum(self.lengths.pick(rows, random), out=offsets[1:])
        letters = _LETTERS[random.integers(0, len(_LETTERS), int(offsets[-1]), dtype=np.uint8)]
        return pa.StringArray.from_buffers(len(rows), pa.py_buffer(offsets), pa.py_buffer(letters))


@dataclass(frozen=True, slots=True)
class FakedTexts:
    """A maker of texts that look like names, addresses and the like, picked at random from a few thousand.

    :param texts: the texts to pick from
    :param longest: the maximum length; None for no limit
    """

    texts: FakeTexts
    longest: int | None

    def make(self, rows: Rows, random: Random) -> pa.Array:
        """Make a text for each row."""
        pool = self.texts.pool
        if self.longest is not None:
            pool = pc.utf8_slice_codeunits(pool, 0, self.longest)
        return pool.take(pa.array(random.integers(0, len(pool), len(rows))))
