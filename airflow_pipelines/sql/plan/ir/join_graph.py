"""The join graph of a block: which conditions of its WHERE read which sources, and which columns they make equal."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from enum import Enum

from airflow_pipelines.sql.plan.ir.lookup import RelationColumn

SourceColumn = tuple[str, str]
"""The alias of a source and the name of one of its columns."""


@dataclass(frozen=True, slots=True)
class Equality:
    """A conjunct ``texts[0] = texts[1]`` each side of which reads one source, ``aliases[0]`` and ``aliases[1]``.

    :param columns: for each side the column of a relation that it is, None for an expression
    """

    aliases: tuple[str, str]
    texts: tuple[str, str]
    columns: tuple[RelationColumn | None, RelationColumn | None]


class Operator(Enum):
    """How two values are compared."""

    EQUAL = "="
    LESS = "<"
    LESS_OR_EQUAL = "<="
    GREATER = ">"
    GREATER_OR_EQUAL = ">="
    ONE_OF = "IN"


Constant = int | Decimal | date | frozenset[int] | frozenset[str]
"""A whole number, a decimal, a day, or for ``ONE_OF`` several values."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """A column compared with another one or with constants."""

    left: SourceColumn
    operator: Operator
    right: SourceColumn | Constant


@dataclass(frozen=True, slots=True)
class Conjunct:
    """One condition of the WHERE: its text and the sources it reads.

    :param is_plain: it compares one column with literals, so that it cannot fail and may be evaluated before the other conditions
    :param comparisons: what it says, when that is only that all of these hold; none when it is more
    :param columns: the columns that it reads
    """

    text: str
    aliases: frozenset[str]
    is_plain: bool
    comparisons: tuple[Comparison, ...] = ()
    columns: frozenset[SourceColumn] = frozenset()


@dataclass(frozen=True, slots=True)
class JoinGraph:
    """A block's conditions, as far as it is sure which sources they read.

    :param columns: which columns of each source the whole block reads; None when that is not sure
    :param reads: which columns of the one relation below each source the source may read; None, or no entry, for all
    :param item_columns: for each item of the block the columns that it reads; None when ``columns`` is
    :param is_complete: whether the conjuncts together say all that the WHERE says
    """

    equalities: tuple[Equality, ...] = ()
    conjuncts: tuple[Conjunct, ...] = ()
    columns: Mapping[str, frozenset[str]] | None = None
    reads: Mapping[str, frozenset[str] | None] = field(default_factory=dict)
    item_columns: tuple[frozenset[SourceColumn], ...] | None = None
    is_complete: bool = False
