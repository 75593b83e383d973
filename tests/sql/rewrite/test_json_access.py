"""JSON_GET and its like, and the operators ``->`` and ``->>``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from airflow_pipelines.program.definitions import Definitions
from airflow_pipelines.sql.rewrite.json_access import JSON_ACCESS
from airflow_pipelines.sql.rewrite.translate import translate
from airflow_pipelines.sql.syntax.edits import Edited

if TYPE_CHECKING:
    from airflow_pipelines.engine.spark.sessions import SparkSessions

VALUES: dict[str, Any] = {
    "json_as_text(j, 'a', 0)": "1",
    "json_as_text(j, 's')": "x",
    "json_as_text(j, 'o')": '{"k":[true]}',
    "json_as_text(j, 'n')": None,
    "json_contains(j, 'n')": True,
    "json_contains(j, 'o', 'k', 0)": True,
    "json_contains(j, 'o', 'k', 1)": False,
    "json_contains('no json', 'a')": False,
    "to_json(json_get(j, 'o', 'k'))": "[true]",
    "to_json(json_get(parse_json(j), 'a', n))": "2.5",
    "to_json(json_get(j, k, 'k'))": "[true]",
    "json_get_array(j, 'a')": ["1", "2.5"],
    "json_get_array(j, 's')": None,
    "json_get_bool(j, 'o', 'k', 0)": True,
    "json_get_bool(j, 's')": None,
    "json_get_float(j, 'a', 1)": 2.5,
    "json_get_int(j, 'a', 0)": 1,
    "json_get_int(j, 'a', 1)": None,
    "json_get_json(j, 's')": '"x"',
    "json_get_json(j, 'n')": "null",
    "json_get_str(j, 's')": "x",
    "json_get_str(j, 'a', 0)": None,
    "json_length(j, 'a')": 2,
    "json_length(j)": 5,
    "json_length(j, 's')": None,
    "json_length(cast(null as string))": None,
    "j ->> 's'": "x",
    "to_json(j -> 'o' -> 'k')": "[true]",
    "j -> 'a' ->> 1": "2.5",
    "parse_json(j) -> k ->> 'k'": "[true]",
    "(j -> 'it''s') is not null": True,
    "transform(array(j), x -> x ->> 's')": ["x"],
    "element_at(map_filter(map(j, 1), (a, b) -> a ->> 's' = 'x'), j)": 1,
    "map {'a': 1, 'b': case when true then 2 end}['b']": 2,
    "map {}": {},
    "map {j ->> 's': map {'i': 1}}['x']['i']": 1,
}
_JSON = """{"a": [1, 2.50], "s": "x", "n": null, "o": {"k": [true]}, "it''s": 0}"""


@pytest.mark.core
def test_values(sessions: SparkSessions) -> None:
    items = ", ".join(f"{text} as v{at}" for at, text in enumerate(VALUES))
    query = translate(Edited(f"select {items} from values ('{_JSON}', 'o', 1) t(j, k, n)"), Definitions())
    (row,) = sessions.small.sql(query.text).collect()
    assert dict(zip(VALUES, row, strict=True)) == VALUES


def test_every_name_has_a_value() -> None:
    assert all(any(f"{name}(" in text for text in VALUES) for name in JSON_ACCESS)


@pytest.mark.parametrize("text", ["transform(l, x -> 'a')", "aggregate(l, 0, (a, b) -> a, a -> a)", "json_get_nothing(j, 'a')"])
def test_lambda_functions_and_other_names_stay(text: str) -> None:
    assert translate(Edited(f"select {text} from t"), Definitions()).text == f"select {text} from t"
