"""Words of SQL are names wherever Spark's parser takes them for names."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlglot import exp

from airflow_pipelines.program.messages import ProgramErrors
from airflow_pipelines.sql.program.parser import parse_program
from airflow_pipelines.sql.syntax.dialect import DIALECT, SyntaxFailure, parse_query
from airflow_pipelines.sql.syntax.words_as_names import hard_words
from tests.sql.syntax.spark_words import POSITIONS, ask

FILE = Path(__file__).with_name("words_as_names.json")
CALLED = {
    "current_catalog", "current_date", "current_time", "current_timestamp", "current_user", "localtime", "localtimestamp",
    "session_user",
}  # fmt: skip
"""Words that stand for calls where no column has the name, which is known only later."""
QUERIES = [position for position in POSITIONS if not position.startswith("CREATE")]
STATEMENTS = [position for position in POSITIONS if position.startswith("CREATE")]
OFTEN = (
    "SELECT {w}, a FROM t",
    "SELECT a FROM t WHERE {w} > 1",
    "SELECT SUM({w}) FROM t",
    "SELECT {w}.a FROM t AS {w}",
    "SELECT COUNT(*), {w} FROM t GROUP BY {w}",
)
"""The positions in which words are tried that are no keywords to sqlglot."""
ALIASES = (
    "SELECT a AS {w} FROM t",
    "SELECT a AS {w}, b AS c FROM t",
    "SELECT a AS {w}",
    "SELECT a {w} FROM t",
    "SELECT a {w}, b c FROM t",
    "SELECT a {w}",
    "SELECT {w} AS a FROM t",
    "SELECT STRUCT(a AS {w}) FROM t",
    "SELECT SUM(a) FILTER (WHERE {w} > 1) FROM t",
    "SELECT * FROM {w} WHERE a > 1",
)
"""Further positions, where every word is a name."""
REFUSED = {
    "SELECT {w} + 1 FROM t": {"case"},
    "SELECT ({w} + 1) FROM t": {"case", "distinct", "where"},
    "SELECT a FROM {w} x JOIN u ON x.a = u.a": {"not"},
    "SELECT CASE WHEN {w} > 1 THEN {w} ELSE {w} END FROM t": {"case", "not"},
    "SELECT CASE {w} WHEN 1 THEN 2 END FROM t": {"case"},
    "SELECT a FROM t ORDER BY {w} DESC, a": {"case"},
    "SELECT a FROM t WHERE NOT {w}": {"distinct"},
    "SELECT a FROM t {w} WHERE a > 1": {"from"},
    "SELECT {w}.a FROM t {w} JOIN u ON {w}.a = u.a": {"asof", "from"},
    "SELECT {w}.a FROM u JOIN t {w} ON {w}.a = u.a": {"from"},
    "SELECT TRANSFORM(a, {w} -> {w} + 1) FROM t": {"case"},
}  # fmt: skip
"""Words that could be the keyword as well, and are refused, other than by Spark."""


@pytest.fixture(scope="module")
def answers(request: pytest.FixtureRequest) -> dict[str, Any]:
    """Spark's words, and the positions in which its parser does not take them for names."""
    if request.config.getoption("--ask-spark"):
        FILE.write_text(json.dumps(ask(request.getfixturevalue("sessions").small), indent=0) + "\n")
    found: dict[str, Any] = json.loads(FILE.read_text())
    return found


def _meaning(query: str) -> str:
    tree = parse_query(query)
    for name in tree.find_all(exp.Identifier):
        name.set("quoted", False)
    return repr(tree)


def _other(position: str, words: set[str]) -> Iterator[tuple[str, str]]:
    """The words that mean something else in a position than they do in back quotes, with what that is."""
    meant = _meaning(position.format(w="`the_word`"))
    for word in sorted(words):
        try:
            found = _meaning(position.format(w=word))
        except SyntaxFailure as refused:
            yield word, refused.message
            continue
        if found != meant.replace("the_word", word):
            yield word, found


def _unsure(position: str) -> set[str]:
    """Behind BY it is for Spark to say whether ALL is a column, when it knows the columns."""
    return {"all"} if "BY {w}" in position else set()


@pytest.mark.parametrize("position", QUERIES)
def test_a_word_is_a_name_where_spark_takes_it_for_one(position: str, answers: dict[str, Any]) -> None:
    words = {word.lower() for word in hard_words()} - set(answers["refused"][position]) - REFUSED.get(position, set())
    assert dict(_other(position, words - CALLED - _unsure(position))) == {}


@pytest.mark.parametrize("position", ALIASES)
def test_a_word_is_an_alias(position: str) -> None:
    assert dict(_other(position, {word.lower() for word in hard_words()})) == {}


@pytest.mark.parametrize("position", OFTEN)
def test_words_that_are_no_keywords_are_names_too(position: str, answers: dict[str, Any]) -> None:
    words = set(answers["words"]) - set(answers["refused"].get(position, ())) - CALLED - _unsure(position)
    assert dict(_other(position, words)) == {}


@pytest.mark.parametrize(("position", "word"), [(position, word) for position, words in REFUSED.items() for word in sorted(words)])
def test_what_could_be_the_keyword_is_refused_with_advice(position: str, word: str) -> None:
    with pytest.raises(SyntaxFailure, match="has to be put in back quotes"):
        parse_query(position.format(w=word))


@pytest.mark.parametrize("position", STATEMENTS)
def test_a_word_is_the_name_of_what_is_declared(position: str, answers: dict[str, Any]) -> None:
    refused = {}
    for word in sorted(set(answers["words"]) - set(answers["refused"][position])):
        try:
            program = parse_program(f"CREATE TABLE t (a INT); {position.format(w=word)};")
        except ProgramErrors as error:
            refused[word] = str(error)
            continue
        names = {*program.tables, *program.views, *(column.name for table in program.tables.values() for column in table.columns)}
        names |= {name for view in program.views.values() for name in view.column_names or ()}
        assert word in names
    assert refused == {}


def test_a_word_may_end_a_statement() -> None:
    program = parse_program(
        "CREATE TABLE t (window INT, offset INT, lock INT);"
        "CREATE VIEW v AS SELECT COUNT(*) AS n, window FROM t GROUP BY window;"
        "CREATE VIEW w AS SELECT offset FROM t ORDER BY lock;"
    )
    assert list(program.views) == ["v", "w"]


@pytest.mark.parametrize(
    "item", ["a IS DISTINCT FROM b", "a IS NOT DISTINCT FROM -b", "NOT (a IS DISTINCT FROM -1)", "c, a IS DISTINCT FROM b AS d"]
)
def test_is_distinct_from_is_no_name(item: str) -> None:
    assert parse_query(f"SELECT {item} FROM t").sql(dialect=DIALECT) == f"SELECT {item} FROM t"


def test_a_column_may_be_called_from_behind_distinct() -> None:
    assert parse_query("SELECT x IS NULL, COUNT(DISTINCT from) FROM t").sql() == 'SELECT x IS NULL, COUNT(DISTINCT "from") FROM t'
