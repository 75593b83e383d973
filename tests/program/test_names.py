from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from airflow_pipelines.program.names import canonical, display, fold, quote
from airflow_pipelines.sql.syntax.tokens import fold_text


def test_canonical() -> None:
    assert canonical("V0") == "v0"
    assert canonical('"V0"') == "V0"
    assert canonical("`V0`") == "V0"
    assert canonical('"a""b"') == 'a"b'
    assert canonical('"') == '"'


def test_quote_and_display() -> None:
    assert quote("a`b") == "`a``b`"
    assert display("v_0") == "v_0"
    assert display("V0") == '"V0"'
    assert display('a"b') == '"a""b"'
    assert display("0v") == '"0v"'


@given(st.text())
def test_folding_keeps_lengths(text: str) -> None:
    assert len(fold(text)) == len(text)
    assert fold(fold(text)) == fold(text)


@given(st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1))
def test_displayed_names_are_canonical_again(name: str) -> None:
    assert canonical(display(name)) == name


def test_dotted_capital_i_keeps_its_place() -> None:
    folded = fold_text("select İX, B")
    assert len(folded.text) == len("select İX, B")
    assert folded.text.endswith("x, b")
