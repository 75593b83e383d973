"""The inputs of cases: a fixed one with the edge cases, and random ones from a seed."""

from __future__ import annotations

import random

Event = tuple[str, int, int]
"""A key, an event time in ms, and a number."""

FIXED: list[Event] = [
    ("a", 0, 1),
    ("a", 8, 5),
    ("b", 4, 0),
    ("a", 20, 3),
    ("b", 3, 7),
    ("a", 9, 4),
    ("c", 10, 2),
    ("c", 15, 2),
    ("a", 20, 9),
    ("b", 31, 6),
    ("b", 19, 8),
    ("a", 2, 1),
    ("c", 40, 0),
    ("a", 29, 4),
    ("b", 40, 3),
]
"""An input with equal times, times on the edges of windows, sessions that touch, and elements that are a little or very late."""


def events(seed: int, rounds: int) -> list[list[Event]]:
    """Return the fixed input and random ones.

    :param seed: the seed of the random ones
    :param rounds: the number of random ones
    :return: the inputs
    """
    dice = random.Random(seed)  # noqa: S311
    return [FIXED, *(_random_events(dice) for _ in range(rounds))]


def _random_events(dice: random.Random) -> list[Event]:
    now, found = 0, []
    for _ in range(dice.randint(10, 25)):
        now += dice.choice([0, 0, 1, 3, 6, 11])
        behind = dice.choice([0, 0, 0, 2, 5, 15])
        found.append((dice.choice("aabc"), max(0, now - behind), dice.randint(0, 9)))
    return found
