"""What all nodes of a plan have in common, whatever they compute."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

ColumnTypes = tuple[tuple[str, str], ...]
"""Names and Spark DDL types of columns, in order."""


class Node(Protocol):
    """How one relation is computed from others.

    A node is an immutable, hashable dataclass of texts, numbers and other nodes; it knows nothing of batches or sessions. For each
    class of nodes the engine has a class of operators.
    """

    @property
    def reads(self) -> frozenset[str]:
        """The relations whose deltas the node follows."""

    @property
    def rereads(self) -> frozenset[str]:
        """The relations whose contents the node reads besides their deltas, so that their traces must be kept."""

    @property
    def strategy(self) -> str:
        """How the node is evaluated, in one or two words."""

    @property
    def starts_with_rows(self) -> bool:
        """Whether the result may have rows while all that the node reads is empty."""

    @property
    def keeps_contents(self) -> bool:
        """Whether the node needs the result's contents before a step to find out how they change."""

    @property
    def append_only(self) -> bool:
        """Whether the result never loses a row as long as nothing that the node reads does."""

    def renamed(self, names: Sequence[str], /) -> Node:
        """The same node with other column names, in order; a node whose columns have no names of its own stays as it is."""
