"""A case: one program, written once for both packages, and the comparison of its results."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

Program = Callable[[Any, Any, Any], Any]
"""A function of the names of a package, its environment and the input, which returns the stream whose elements are compared."""


class Order(Enum):
    """The part of the order of the results that has to be equal."""

    EXACT = "all of it"
    BY_KEY = "that of the results of one key, which is the first field of a result"
    NONE = "nothing: the results are compared as a bag"


class Shape(Enum):
    """The form in which results leave the program."""

    VALUES = "as Python values, by execute_and_collect"
    TEXT = "as lines of text, by a file sink"


@dataclass(frozen=True)
class Case:
    """One program.

    :param name: its name, for people and for the choice of cases
    :param program: the function that makes the stream
    :param order: the part of the order that is compared
    :param shape: the form of the results
    :param inputs: the function that returns the inputs, from a seed and a number of rounds
    :param differs: the reason why the results differ intentionally; None if they must be equal
    :param only_here: the reason why PyFlink cannot run the program; None if it can
    :param fails: True if both must reject it, or end with an error
    :param batch: True if it runs in batch mode
    """

    name: str
    program: Program
    order: Order
    shape: Shape
    inputs: Callable[[int, int], list[Any]]
    differs: str | None = None
    only_here: str | None = None
    fails: bool = False
    batch: bool = False


CASES: dict[str, Case] = {}
"""All cases by name, filled when :mod:`tools.compare_flink.programs` is imported."""


def no_input(_seed: int, _rounds: int) -> list[Any]:
    """Return the input of one run without input: the program has its own."""
    return [None]


def case(
    name: str,
    *,
    order: Order = Order.EXACT,
    shape: Shape = Shape.VALUES,
    inputs: Callable[[int, int], list[Any]] = no_input,
    differs: str | None = None,
    only_here: str | None = None,
    fails: bool = False,
    batch: bool = False,
) -> Callable[[Program], Program]:
    """Make a case of a program. The parameters are those of :class:`Case`."""

    def add(program: Program) -> Program:
        if name in CASES:
            raise ValueError(f"two cases have the name {name!r}")
        CASES[name] = Case(name, program, order, shape, inputs, differs, only_here, fails, batch)
        return program

    return add
