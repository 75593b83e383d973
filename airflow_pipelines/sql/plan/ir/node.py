"""The interface and the properties that all nodes of a plan share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

ColumnTypes = tuple[tuple[str, str], ...]
"""The names and Spark DDL types of columns, in order."""


class Node(Protocol):
    """A description of how one relation is computed from others.

    A node is an immutable, hashable dataclass of texts, numbers and other nodes; it does not depend on batches or sessions. For
    each class of nodes the engine has a class of operators.
    """

    @property
    def reads(self) -> frozenset[str]:
        """The relations whose deltas the node follows."""

    @property
    def rereads(self) -> frozenset[str]:
        """The relations whose contents the node reads besides their deltas, so that their traces must be kept."""

    @property
    def strategy(self) -> str:
        """The evaluation strategy of the node, in one or two words."""

    @property
    def starts_with_rows(self) -> bool:
        """True if the result may have rows while all relations that the node reads are empty."""

    @property
    def keeps_contents(self) -> bool:
        """True if the node needs the result's contents before a step to compute their delta."""

    @property
    def append_only(self) -> bool:
        """True if the result never loses a row as long as no relation that the node reads does."""

    def renamed(self, names: Sequence[str], /) -> Node:
        """Return the same node with other column names, in order; a node whose columns have no names of its own stays as it is."""
