from __future__ import annotations

import copy
import pickle

import pytest

from airflow_pipelines.datastream.common.row import Row, RowKind


def test_fields_are_read_and_set_by_name_and_position() -> None:
    row = Row(name="Ann", age=11)
    assert (row.name, row["age"], row[0], row[-1], row[:1]) == ("Ann", 11, "Ann", 11, ["Ann"])
    row.age = 12
    row["name"] = "Bea"
    row[1] += 1
    assert list(row) == ["Bea", 13]
    assert len(row) == 2
    assert "Bea" in row
    assert row.get_fields_by_names(["age", "name"]) == [13, "Bea"]


def test_a_row_of_names_makes_rows() -> None:
    person = Row("name", "age")
    assert repr(person) == "<Row('name', 'age')>"
    assert repr(person("Ann", 11)) == "Row(name='Ann', age=11)"
    with pytest.raises(ValueError, match="has 1 values and cannot take 2 field names"):
        person("Ann")


def test_rows_are_equal_by_values_names_and_kind() -> None:
    row = Row(a=1, b=[2])
    assert row == Row(a=1, b=[2])
    assert row != Row(1, [2])
    assert row != Row.of_kind(RowKind.DELETE, a=1, b=[2])
    assert hash(Row(a=1)) == hash(Row(a=1))
    assert pickle.loads(pickle.dumps(Row.of_kind(RowKind.UPDATE_AFTER, a=1))) == Row.of_kind(RowKind.UPDATE_AFTER, a=1)
    copied = copy.deepcopy(row)
    copied.b.append(3)
    assert row.b == [2]


def test_as_dict_goes_into_what_the_row_contains() -> None:
    row = Row(a=Row(x=1), b=[Row(x=2)], c={"k": Row(x=3)})
    assert row.as_dict()["a"] == Row(x=1)
    assert row.as_dict(recursive=True) == {"a": {"x": 1}, "b": [{"x": 2}], "c": {"k": {"x": 3}}}
    with pytest.raises(TypeError, match="has no field names"):
        Row(1).as_dict()


def test_says_which_fields_there_are() -> None:
    with pytest.raises(AttributeError, match="its fields are name"):
        _ = Row(name="Ann").age
    with pytest.raises(KeyError, match="its fields have no names"):
        _ = Row(1)["name"]
    with pytest.raises(AttributeError, match="has no field 'ag'"):
        Row(age=1).ag = 2
    with pytest.raises(ValueError, match="either named fields or fields without names"):
        Row(1, a=2)
    with pytest.raises(ValueError, match="same name"):
        Row.of([1, 2], ["a", "a"])
    with pytest.raises(TypeError, match=r"RowKind.INSERT, RowKind.UPDATE_BEFORE"):
        Row(1).set_row_kind("+I")  # type: ignore[arg-type]
