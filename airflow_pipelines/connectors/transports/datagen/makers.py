"""Makers of the values of one column."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa

from airflow_pipelines.connectors.transports.datagen.draws import Random, Rows, WholeNumbers


class PlanProblem(ValueError):
    """The error for a plan that cannot be carried out; the message says which part of it, and why."""


class Maker(Protocol):
    """A maker of the values of one column, or of one part of its values."""

    def make(self, rows: Rows, random: Random) -> pa.Array:
        """Make a value for each row.

        :param rows: the numbers of the rows
        :param random: the random number generator
        """


@dataclass(frozen=True, slots=True)
class Nulls:
    """A maker of the values of another maker, some of which become NULL.

    :param maker: the other maker
    :param share: the share of values that become NULL, from 0 to 1
    """

    maker: Maker
    share: float

    def make(self, rows: Rows, random: Random) -> pa.Array:
        """Make a value for each row."""
        null = random.random(len(rows)) < self.share
        return self.maker.make(rows, random).take(pa.array(np.arange(len(rows)), mask=null))


@dataclass(frozen=True, slots=True)
class OneOf:
    """A maker that picks values from a list.

    :param values: the list
    :param places: the picker of indices into it
    """

    values: pa.Array
    places: WholeNumbers

    def make(self, rows: Rows, random: Random) -> pa.Array:
        """Make a value for each row."""
        return self.values.take(pa.array(self.places.pick(rows, random)))


@dataclass(frozen=True, slots=True)
class Nothing:
    """A maker of NULL for each row, for a column that can hold nothing else."""

    kind: pa.DataType

    def make(self, rows: Rows, random: Random) -> pa.Array:  # noqa: ARG002 - the protocol's signature
        """Make NULL for each row."""
        return pa.nulls(len(rows), self.kind)
