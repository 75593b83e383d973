"""The ways of evaluating one thing. Each returns the whole result, or declines, and then the next one is tried.

A way declines when it has no means for the types, the expressions or the shape of its input, or when more rows or bytes are in its
hands than a limit allows. So an operator lists its ways, the cheapest first, and none of them looks at what the others can do.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


class Declined(Exception):
    """The signal that a way leaves the work to the next one. It never leaves an operator, whose last way accepts everything."""


class TooMuch(Declined):
    """The signal that a way has met a limit of rows or bytes."""


def first_accepted(*ways: Callable[[], T]) -> T:
    """Return the result of the first way that does not decline.

    >>> def by_index():
    ...     raise Declined("the column has no index")
    >>> first_accepted(by_index, lambda: "by scan")
    'by scan'

    :param ways: the ways, the cheapest first
    :raises Declined: if the last one declines
    """
    *others, last = ways
    for way in others:
        try:
            return way()
        except Declined:
            continue
    return last()


def accepted(way: Callable[[], T]) -> T | None:
    """Return the result of a way, or None if it declines, for callers that remember either.

    :param way: the way
    """
    try:
        return way()
    except Declined:
        return None


class Budget:
    """The rows or bytes that one evaluation may still use.

    >>> budget = Budget(3)
    >>> budget.spend(3)
    >>> budget.left
    0
    >>> budget.spend(1)
    Traceback (most recent call last):
    airflow_pipelines.engine.execution.ways.TooMuch: more than 3
    """

    def __init__(self, most: int) -> None:
        """:param most: the number that may be used in total."""
        self._most = most
        self.left = most
        """The number that may still be used."""

    def require(self, amount: int) -> None:
        """Check that so much is left, before work whose result may need less.

        :param amount: the number that may be needed
        :raises TooMuch: if less is left
        """
        if amount > self.left:
            raise TooMuch(f"more than {self._most}")

    def spend(self, amount: int) -> None:
        """Use some of it.

        :param amount: the number to use
        :raises TooMuch: if more is used than there was
        """
        self.require(amount)
        self.left -= amount
