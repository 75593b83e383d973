"""The join graph of a block: which conditions of its WHERE read which sources, and which columns they make equal."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from airflow_pipelines.sql.plan.ir.lookup import RelationColumn


@dataclass(frozen=True, slots=True)
class Equality:
    """A conjunct ``texts[0] = texts[1]`` each side of which reads one source, ``aliases[0]`` and ``aliases[1]``.

    :param columns: for each side the column of a relation that it is, None for an expression
    """

    aliases: tuple[str, str]
    texts: tuple[str, str]
    columns: tuple[RelationColumn | None, RelationColumn | None]


@dataclass(frozen=True, slots=True)
class Conjunct:
    """One condition of the WHERE: its text and the sources it reads.

    :param is_plain: it compares one column with literals, so that it cannot fail and may be evaluated before the other conditions
    """

    text: str
    aliases: frozenset[str]
    is_plain: bool


@dataclass(frozen=True, slots=True)
class JoinGraph:
    """A block's conditions, as far as it is sure which sources they read.

    :param columns: which columns of each source the whole block reads; None when that is not sure
    :param reads: which columns of the one relation below each source the source may read; None, or no entry, for all
    """

    equalities: tuple[Equality, ...] = ()
    conjuncts: tuple[Conjunct, ...] = ()
    columns: Mapping[str, frozenset[str]] | None = None
    reads: Mapping[str, frozenset[str] | None] = field(default_factory=dict)
