"""A case: one program, written once for both packages, and how its results are compared."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

Program = Callable[[Any, Any, Any], Any]
"""Takes the names of a package, its environment and the input; gives the stream whose elements are compared."""


class Order(Enum):
    """What of the order of the results has to be the same."""

    EXACT = "all of it"
    BY_KEY = "that of the results of one key, which is the first field of a result"
    NONE = "nothing: the results are compared as a bag"


class Shape(Enum):
    """How results leave the program."""

    VALUES = "as Python values, by execute_and_collect"
    TEXT = "as lines of text, by a file sink"


@dataclass(frozen=True)
class Case:
    """One program.

    :param name: for people, and to choose it
    :param program: makes the stream
    :param order: what of the order is compared
    :param shape: how results are taken
    :param inputs: gives the inputs to try, from a seed and a number of rounds
    :param differs: why the results are meant to differ; None when they must be equal
    :param only_here: why PyFlink cannot run the program; None when it can
    :param fails: whether both must refuse it, or end with an error
    :param batch: whether it runs in batch mode
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
    """One run without input: the program has its own."""
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
