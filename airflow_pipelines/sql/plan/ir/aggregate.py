"""GROUP BY and everything that is computed in the same way: DISTINCT, UNION, INTERSECT, EXCEPT, grouping sets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import ClassVar

from airflow_pipelines.rows.zsets import Merge
from airflow_pipelines.sql.plan.ir.description import DERIVED, formerly
from airflow_pipelines.sql.plan.ir.expression import Expression
from airflow_pipelines.sql.plan.ir.linear import Item, Select
from airflow_pipelines.sql.plan.ir.lookup import Lookup


class Total(Enum):
    """A total of the rows of a group, or of their values in a column, that needs no evaluation of an expression."""

    ROWS = "rows"
    """The number of rows."""
    VALUES = "values"
    """The number of values that are not NULL."""
    SUM = "sum"
    MIN = "min"
    MAX = "max"


@dataclass(frozen=True, slots=True)
class ColumnTotal:
    """The total of row values that an accumulator equals.

    :param total: the kind of total
    :param value: the value of a row, as SQL over the columns of the aggregate's input; None for all rows
    """

    total: Total
    value: Expression | None = None


@dataclass(frozen=True, slots=True)
class Accumulator:
    """A value per group that is maintained from deltas.

    :param name: its column
    :param type: its Spark type
    :param text: its SQL text over the input's columns and weight
    :param unit_weights_text: its SQL text for rows that all have weight 1, if that is cheaper: multiplying decimals by the weight
     costs more than all the rest
    :param merge: the operation that merges its values from several batches. Extremes are only kept for inputs that never lose a row
    :param column_total: the total of row values that it equals, if no sum can overflow its type
    """

    name: str
    type: str
    text: Expression
    unit_weights_text: Expression | None = field(default=None, metadata=formerly("once"))
    merge: Merge = field(default=Merge.SUM, compare=False, metadata=DERIVED)
    column_total: ColumnTotal | None = field(default=None, compare=False, metadata=DERIVED)


@dataclass(frozen=True, slots=True)
class KeptValue:
    """The value of a call that is an accumulator unchanged, except perhaps for its type.

    :param accumulator: the accumulator's name
    :param count: an accumulator that counts values: the value is NULL where it is 0; None if the value needs no such check
    """

    accumulator: str
    count: str | None = None


@dataclass(frozen=True, slots=True)
class Call:
    """One aggregate call: the name of its value in HAVING and SELECT, its text over the input's columns, and its type.

    :param value: its text over accumulators if the call is linear, else None
    :param kept: the accumulator that holds the value, if no expression has to be evaluated
    """

    name: str
    text: Expression
    type: str
    value: Expression | None
    kept: KeptValue | None = field(default=None, compare=False, metadata=DERIVED)


@dataclass(frozen=True, slots=True)
class CallsOverRows:
    """The calls of an aggregate, computed from accumulators over all rows of a group because deltas alone are not enough.

    :param calls: the calls, in the order of the aggregate's calls
    :param accumulators: the accumulators that they are computed from
    """

    calls: tuple[Call, ...]
    accumulators: tuple[Accumulator, ...]


@dataclass(frozen=True, slots=True)
class UnionPart:
    """The rows of one relation that are a part of an aggregate's input.

    :param relation: the relation's name
    :param columns: the relation's columns by the names that they have in ``values``
    :param values: for each column of the aggregate's input SQL over ``columns``; None if it is NULL in all rows
    """

    relation: str
    columns: Mapping[str, str]
    values: Mapping[Expression, Expression | None]


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
    having: Expression | None = None
    input_types: tuple[str, ...] = ()
    """The types of ``input``'s columns."""
    lookup: Lookup | None = field(default=None, compare=False, repr=False, metadata=DERIVED)
    """The lookup of the input's rows of some groups, derived by a pass over finished stages."""
    over_rows: CallsOverRows | None = field(default=None, compare=False, repr=False, metadata=DERIVED)
    """The calls over all rows of a group, derived by a pass over finished stages for an aggregate that is not linear."""
    union_parts: tuple[UnionPart, ...] = field(default=(), compare=False, repr=False, metadata=DERIVED)
    """The parts of the input, derived by a pass over finished stages for an aggregate over rows of several relations."""

    keeps_contents: ClassVar[bool] = False
    append_only: ClassVar[bool] = False

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the result's columns."""
        return tuple(item.name for item in self.items)

    @property
    def is_linear(self) -> bool:
        """True if every call can be computed from accumulators, so that the input's contents are never read."""
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
