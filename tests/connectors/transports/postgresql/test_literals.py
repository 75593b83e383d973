"""Arrays and rows as a server writes them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_pipelines.connectors.transports.postgresql.copy_texts import _element
from airflow_pipelines.connectors.transports.postgresql.literals import array_elements, row_fields


def test_arrays() -> None:
    assert array_elements("{}") == []
    assert array_elements('{1,NULL,"NULL","",a b}') == ["1", None, "NULL", "", "a b"]
    assert array_elements("[2:3]={1,2}") == ["1", "2"]
    assert array_elements("[0:1][1:1]={{1},{2}}") == [["1"], ["2"]]
    assert array_elements(r'{"a\"b","c\\d","{,}"}') == ['a"b', "c\\d", "{,}"]


@pytest.mark.parametrize("text", ["", "1", "{", "{1", "{1}}", '{"a}', "{1}x", "}{"])
def test_what_is_no_array(text: str) -> None:
    with pytest.raises(ValueError, match="is not an array"):
        array_elements(text)


@given(st.lists(st.none() | st.text(st.characters(exclude_categories=("Cs",)))))
def test_arrays_that_outputs_write_are_read_back(elements: list[str | None]) -> None:
    assert array_elements("{" + ",".join(map(_element, elements)) + "}") == elements


def test_rows() -> None:
    assert row_fields('(1,,"","a ""b"", (c)","d\\\\e")') == ["1", None, "", 'a "b", (c)', "d\\e"]
    assert row_fields("()") == [None]
    for text in ("", "(", "(1", "(1)x", "1)", '("a)'):
        with pytest.raises(ValueError, match="is not a row"):
            row_fields(text)
