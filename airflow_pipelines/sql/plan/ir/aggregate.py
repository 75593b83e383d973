"""GROUP BY and all that is computed in its way: DISTINCT, UNION, INTERSECT, EXCEPT, grouping sets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import ClassVar

from airflow_pipelines.rows.zsets import Merge
from airflow_pipelines.sql.plan.ir.description import DERIVED, formerly
from airflow_pipelines.sql.plan.ir.linear import Item, Select
from airflow_pipelines.sql.plan.ir.lookup import Lookup


class Total(Enum):
    """What can be said of the rows of a group, or of the values that they have in a column, without evaluating an expression."""

    ROWS = "rows"
    """How many rows there are."""
    VALUES = "values"
    """How many values are not NULL."""
    SUM = "sum"
    MIN = "min"
    MAX = "max"


@dataclass(frozen=True, slots=True)
class ColumnTotal:
    """What an accumulator is of the values of its rows.

    :param total: what is said
    :param value: of which value of a row, as SQL over the columns of the aggregate's input; None for all rows
    """

    total: Total
    value: str | None = None


@dataclass(frozen=True, slots=True)
class Accumulator:
    """A value per group that is kept up to date from deltas.

    :param name: its column
    :param type: its Spark type
    :param text: its SQL text over the input's columns and weight
    :param unit_weights_text: its SQL text where every weight is 1, if that is less work: multiplying decimals by the weight costs
        more than all the rest
    :param merge: how its values in several batches become one. Extremes are only kept of inputs that never lose a row
    :param column_total: what it is of the values of its rows, if no sum can be too large for its type
    """

    name: str
    type: str
    text: str
    unit_weights_text: str | None = field(default=None, metadata=formerly("once"))
    merge: Merge = field(default=Merge.SUM, compare=False, metadata=DERIVED)
    column_total: ColumnTotal | None = field(default=None, compare=False, metadata=DERIVED)


@dataclass(frozen=True, slots=True)
class KeptValue:
    """The value of a call that is an accumulator as it is, but for its type.

    :param accumulator: its name
    :param count: the accumulator without which there is no value: it is NULL where that is 0
    """

    accumulator: str
    count: str | None = None


@dataclass(frozen=True, slots=True)
class Call:
    """One aggregate call: the name its value has in HAVING and SELECT, the text over the input's columns, and its type.

    :param value: its text over accumulators when the call is linear, else None
    :param kept: the same where no expression has to be evaluated for it
    """

    name: str
    text: str
    type: str
    value: str | None
    kept: KeptValue | None = field(default=None, compare=False, metadata=DERIVED)


@dataclass(frozen=True, slots=True)
class CallsOverRows:
    """The calls of an aggregate as they follow from accumulators of all rows of a group, where they do not follow from changes.

    :param calls: in the order of the aggregate's calls
    :param accumulators: what they are computed from
    """

    calls: tuple[Call, ...]
    accumulators: tuple[Accumulator, ...]


@dataclass(frozen=True, slots=True)
class UnionPart:
    """Rows of one relation that are a part of an aggregate's input.

    :param relation: its name
    :param columns: columns of it by the names that they have in ``values``
    :param values: by column of the aggregate's input, SQL over ``columns``; None where it is NULL in all rows
    """

    relation: str
    columns: Mapping[str, str]
    values: Mapping[str, str | None]


@dataclass(frozen=True, slots=True)
class Aggregate:
    """GROUP BY: ``keys`` are named expressions over ``input``'s columns; ``items`` and ``having`` read keys and calls by name.

    Without keys there is exactly one group, which exists over an empty input too.
    """

    input: Select
    keys: tuple[Item, ...]
    key_types: tuple[str, ...]
    calls: tuple[Call, ...]
    accumulators: tuple[Accumulator, ...]
    items: tuple[Item, ...]
    having: str | None = None
    input_types: tuple[str, ...] = ()
    """Types of ``input``'s columns."""
    lookup: Lookup | None = field(default=None, compare=False, repr=False, metadata=DERIVED)
    """Derived by a pass over finished stages: how the input's rows of some groups are looked up."""
    over_rows: CallsOverRows | None = field(default=None, compare=False, repr=False, metadata=DERIVED)
    """Derived by a pass over finished stages, for an aggregate that is not linear."""
    union_parts: tuple[UnionPart, ...] = field(default=(), compare=False, repr=False, metadata=DERIVED)
    """Derived by a pass over finished stages, for an aggregate over rows of several relations."""

    keeps_contents: ClassVar[bool] = False
    append_only: ClassVar[bool] = False

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the result's columns."""
        return tuple(item.name for item in self.items)

    @property
    def is_linear(self) -> bool:
        """Whether every call follows from accumulators, so that the input's contents are never read."""
        return all(call.value is not None for call in self.calls)

    @property
    def reads(self) -> frozenset[str]:
        """See :class:`Node`."""
        return self.input.reads

    @property
    def rereads(self) -> frozenset[str]:
        """See :class:`Node`."""
        return self.input.rereads if self.is_linear else self.reads

    @property
    def strategy(self) -> str:
        """See :class:`Node`."""
        return "accumulators" if self.is_linear else "touched groups"

    @property
    def starts_with_rows(self) -> bool:
        """See :class:`Node`."""
        return not self.keys

    def renamed(self, names: Sequence[str], /) -> Aggregate:
        """See :class:`Node`."""
        return replace(self, items=tuple(Item(name, item.text) for name, item in zip(names, self.items, strict=True)))
