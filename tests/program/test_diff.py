from __future__ import annotations

from airflow_pipelines.program.diff import compare
from airflow_pipelines.program.fingerprints import Fingerprints


def test_operators_are_shown_where_some_differ() -> None:
    old = Fingerprints(tables={"t": "1"}, operators={"kept": "1", "gone": "1", "other": "1"})
    new = Fingerprints(tables={"t": "1"}, operators={"kept": "1", "new": "1", "other": "2"})
    difference = compare(old, new)
    assert not difference.is_empty
    shown = difference.to_wire()["program_diff"]
    assert (shown["added_operators"], shown["removed_operators"], shown["modified_operators"]) == (["new"], ["gone"], ["other"])


def test_the_difference_of_programs_without_operators_has_no_field_for_them() -> None:
    difference = compare(Fingerprints(tables={"t": "1"}), Fingerprints(tables={"t": "2"}, views={"v": "1"}))
    assert difference.to_wire()["program_diff"] == {
        "added_tables": [],
        "removed_tables": [],
        "modified_tables": ["t"],
        "added_views": ["v"],
        "removed_views": [],
        "modified_views": [],
    }
    assert difference.program_diff is not None
    assert difference.program_diff.fresh_tables == {"t"}
    assert difference.program_diff.fresh_views == {"v"}


def test_fresh_connectors_are_those_without_a_position() -> None:
    old = Fingerprints(tables={"t": "1"}, input_connectors={"t.a": "1", "t.b": "1"}, owners={"t.a": "t", "t.b": "t"})
    new = Fingerprints(tables={"t": "1"}, input_connectors={"t.b": "2", "t.c": "1"}, owners={"t.b": "t", "t.c": "t"})
    assert compare(old, new).fresh_connectors == {"t.b", "t.c"}


def test_a_difference_in_one_line_names_what_differs_only() -> None:
    old = Fingerprints(tables={"t": "1"}, input_connectors={"t.a": "1"}, owners={"t.a": "t"}, operators={"o": "1"})
    new = Fingerprints(tables={"t": "1"}, views={"v": "1", "w": "1"}, operators={"o": "2"})
    assert compare(old, new).describe() == "added views: v, w; modified operators: o; removed input connectors: t.a"
    assert compare(old, old).describe() == ""
