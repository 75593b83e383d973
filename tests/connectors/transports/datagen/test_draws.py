"""Numbers as strategies pick them."""

from __future__ import annotations

import math

import numpy as np
import pytest

from airflow_pipelines.connectors.transports.datagen.draws import MOST, FloatingNumbers, WholeNumbers, zipf_ranks
from airflow_pipelines.connectors.transports.datagen.options import Strategy

ROWS = np.arange(6, dtype=np.int64)


def random() -> np.random.Generator:
    return np.random.default_rng(7)


@pytest.mark.parametrize(
    ("numbers", "wanted"),
    [
        (WholeNumbers(0, 100), [0, 1, 2, 3, 4, 5]),
        (WholeNumbers(1, 4), [1, 2, 3, 1, 2, 3]),
        (WholeNumbers(10, 20, step=4), [10, 14, 18, 12, 16, 10]),
        (WholeNumbers(0, 100, step=0.5), [0, 0, 1, 1, 2, 2]),
        (WholeNumbers(0, 10, step=-1), [0, 9, 8, 7, 6, 5]),
        (WholeNumbers(-5, -2), [-5, -4, -3, -5, -4, -3]),
        # Beyond what eight bytes hold.
        (WholeNumbers(0, 10**38, step=10**20), [number * 10**20 for number in range(6)]),
        (WholeNumbers(10**30, 10**30 + 4), [10**30 + number % 4 for number in range(6)]),
        (WholeNumbers(MOST - 1, MOST + 1), [MOST - 1, MOST] * 3),
    ],
)
def test_increments(numbers: WholeNumbers, wanted: list[int]) -> None:
    assert numbers.pick(ROWS, random()).tolist() == wanted


@pytest.mark.parametrize(("start", "end"), [(0, 3), (-(2**63), 2**63), (-(10**38), 10**38), (2**63, 2**64)])
def test_uniform_numbers_are_of_their_range(start: int, end: int) -> None:
    found = [int(n) for n in WholeNumbers(start, end, Strategy.UNIFORM).pick(np.zeros(500, np.int64), random())]
    assert start <= min(found) < start + (end - start) // 2 < max(found) < end


def test_floating_numbers() -> None:
    assert FloatingNumbers(0.5, 2.5, scale=0.75).pick(ROWS, random()).tolist() == [0.5, 1.25, 2.0, 0.75, 1.5, 2.25]
    greatest = float(np.finfo(np.float64).max)
    found = FloatingNumbers(-greatest, greatest, Strategy.UNIFORM).pick(np.zeros(500, np.int64), random())
    assert np.isfinite(found).all()
    assert found.min() < -greatest / 2 < greatest / 2 < found.max()


@pytest.mark.parametrize("exponent", [0.0, 0.5, 1.0, 2.5])
def test_zipf_ranks_come_as_often_as_their_distribution_says(exponent: float) -> None:
    ranks = zipf_ranks(5, exponent, 50_000, random())
    weights = [rank**-exponent for rank in range(1, 6)]
    for rank, weight in enumerate(weights, 1):
        share = weight / sum(weights)
        # Five standard deviations.
        assert abs((ranks == rank).mean() - share) < 5 * math.sqrt(share * (1 - share) / 50_000)


def test_zipf_over_the_whole_of_a_type() -> None:
    found = WholeNumbers(-(2**63), 2**63, Strategy.ZIPF).pick(np.zeros(1000, np.int64), random())
    assert found.min() >= -(2**63)
    assert zipf_ranks(1, 1.0, 3, random()).tolist() == [1, 1, 1]
