"""The join graph of a block: the sources that each condition of its WHERE reads, and the columns that it makes equal."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sqlglot import exp

from airflow_pipelines.sql.plan.ir.expression import Expression
from airflow_pipelines.sql.plan.ir.lookup import RelationColumn

SourceColumn = tuple[str, str]
"""The alias of a source and the name of one of its columns."""


@dataclass(frozen=True, slots=True)
class Equality:
    """A conjunct ``texts[0] = texts[1]`` each side of which reads one source, ``aliases[0]`` and ``aliases[1]``.

    :param columns: for each side the relation's column that it is, None for an expression
    """

    aliases: tuple[str, str]
    texts: tuple[Expression, Expression]
    columns: tuple[RelationColumn | None, RelationColumn | None]


@dataclass(frozen=True, slots=True)
class Conjunct:
    """One condition of the WHERE: its text and the sources it reads.

    :param is_plain: True if it compares one column with literals, so that it cannot fail and may be evaluated before the others
    :param columns: the columns that it reads
    :param tree: the condition itself
    """

    text: Expression
    aliases: frozenset[str]
    is_plain: bool
    columns: frozenset[SourceColumn]
    tree: exp.Expr = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class JoinGraph:
    """The conditions of a block, as far as the sources that they read are known.

    :param columns: the columns of each source that the whole block reads; None if that is not certain
    :param reads: the columns of the one relation below each source that the source may read; None, or no entry, for all
    :param item_columns: for each item of the block the columns that it reads; None if ``columns`` is None
    :param is_complete: True if the conjuncts together are equivalent to the WHERE
    """

    equalities: tuple[Equality, ...] = ()
    conjuncts: tuple[Conjunct, ...] = ()
    columns: Mapping[str, frozenset[str]] | None = None
    reads: Mapping[str, frozenset[str] | None] = field(default_factory=dict)
    item_columns: tuple[frozenset[SourceColumn], ...] | None = None
    is_complete: bool = False
