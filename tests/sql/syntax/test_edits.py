"""Edited texts know where their pieces came from."""

from __future__ import annotations

import pytest

from airflow_pipelines.sql.syntax.edits import Edit, Edited


def test_edits_replace_pieces_and_places_lead_back() -> None:
    edited = Edited("select f(a), b from t").edit([Edit(7, 11, "long_name(a, 1)"), Edit(13, 14, "c")])
    assert edited.text == "select long_name(a, 1), c from t"
    at = edited.text.index("from")
    assert edited.origin(at, at + 4) == (15, 19)
    at = edited.text.index("name")
    assert edited.origin(at, at + 4) == (7, 11)


def test_places_lead_back_through_several_rounds() -> None:
    once = Edited("a b c").edit([Edit(0, 1, "xxx")])
    twice = once.edit([Edit(4, 5, "yyyy")])
    assert twice.text == "xxx yyyy c"
    assert twice.origin(9, 10) == (4, 5)
    assert twice.origin(5, 7) == (2, 3)
    assert twice.origin(1, 2) == (0, 1)


def test_an_insertion_stands_for_the_place_where_it_was_made() -> None:
    edited = Edited("ab").edit([Edit(1, 1, "--")])
    assert edited.text == "a--b"
    assert edited.origin(1, 3) == (1, 1)
    assert edited.origin(3, 4) == (1, 2)


def test_overlapping_edits_are_refused() -> None:
    with pytest.raises(ValueError, match="overlap"):
        Edited("abc").edit([Edit(0, 2, "x"), Edit(1, 3, "y")])
