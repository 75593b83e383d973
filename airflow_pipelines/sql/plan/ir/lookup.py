"""Lookups of rows by keys: the columns of a relation by which an index finds them."""

from __future__ import annotations

from dataclasses import dataclass

RelationColumn = tuple[str, str]
"""A relation and the name of one of its columns."""


@dataclass(frozen=True, slots=True)
class Lookup:
    """The columns by which the rows of a node with some keys are looked up in the one relation that the node reads.

    :param columns: for each part of the key the relation's column that it is, None for an expression; at least one is a column.
     A lookup by only some parts of the key may find more rows than those with the key.
    :param reads: the columns of the relation that the node may read, None for all
    """

    relation: str
    columns: tuple[str | None, ...]
    reads: frozenset[str] | None
