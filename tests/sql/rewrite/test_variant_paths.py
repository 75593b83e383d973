"""Paths into VARIANTs behind a colon."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest

from airflow_pipelines.program.definitions import Definitions
from airflow_pipelines.program.messages import ProgramErrors
from airflow_pipelines.sql.program.parser import parse_program
from airflow_pipelines.sql.rewrite.translate import translate
from airflow_pipelines.sql.syntax.edits import Edited

if TYPE_CHECKING:
    from airflow_pipelines.engine.spark.sessions import SparkSessions

_A = """VARIANT_GET(v, '$["a"]', 'variant')"""


@pytest.mark.parametrize(
    ("written", "becomes"),
    [
        ("v:a", _A),
        ("t.v:a", _A.replace("(v", "(t.v")),
        ("v : a", _A),
        ("v:['a']", _A),
        ("v:`A b`", """VARIANT_GET(v, '$["A b"]', 'variant')"""),
        ("v:a.b[0]['c d'].e", """VARIANT_GET(v, '$["a"]["b"][0]["c d"]["e"]', 'variant')"""),
        ("v:limit.from", """VARIANT_GET(v, '$["limit"]["from"]', 'variant')"""),
        ("parse_json(s):a", """VARIANT_GET(parse_json(s), '$["a"]', 'variant')"""),
        ("(v):a", """VARIANT_GET((v), '$["a"]', 'variant')"""),
        ("m['k']:a", """VARIANT_GET(m['k'], '$["a"]', 'variant')"""),
        ("v:a:b", f"""VARIANT_GET({_A}, '$["b"]', 'variant')"""),
        ("cast(v:a as int)", f"cast({_A} as int)"),
        ("v:a::int", f"{_A}::int"),
        ("v:a::varchar(2)", f"LEFT(CAST({_A} AS STRING), 2)"),
        ("v:a::struct<x: int, y: array<struct<z: int>>> , v:a", None),
        ("sum(v:a::int) over (partition by v:a::string)", f"sum({_A}::int) over (partition by {_A}::string)"),
        ("cast(r as struct<a: int>).a", "CAST(r AS STRUCT<`a`: INT>).a"),
        ("map {'k': 1}", "MAP('k', 1)"),
    ],
)
def test_a_path_becomes_a_call(written: str, becomes: str | None) -> None:
    found = translate(Edited(f"select {written} from t"), Definitions()).text
    if becomes is None:
        assert found.count("VARIANT_GET(") == 2
    else:
        assert found == f"select {becomes} from t"


def test_fields_keep_their_case() -> None:
    program = parse_program("create table t (V variant); create view w as select V:Name.First::STRING as N from T;")
    assert program.views["w"].query == """select VARIANT_GET(v, '$["Name"]["First"]', 'variant')::string as n from t"""


def test_a_computed_element_is_refused() -> None:
    with pytest.raises(ProgramErrors, match=r"write \(v:a\)\[i\] for a computed element"):
        parse_program("create table t (v variant, i int); create view w as select v:a[i] from t;")


VALUES: dict[str, Any] = {
    "v:a.b[0]::int": 1,
    "cast(v:a.b[1] as decimal(3,1))": Decimal("2.5"),
    "v:['a']['b'][1]::string": "2.5",
    "v:none::int": None,
    "v:a.none[7].x::string": None,
    "try_cast(v:s as int)": None,
    "to_json(v:a)": '{"b":[1,2.5]}',
    "upper(v:s::string)": "X",
    "v:n is null": False,
    "v:none is null": True,
}


@pytest.mark.core
def test_values(sessions: SparkSessions) -> None:
    items = ", ".join(f"{text} as v{at}" for at, text in enumerate(VALUES))
    document = '{"a": {"b": [1, 2.5]}, "s": "x", "n": null}'
    query = translate(Edited(f"select {items} from (select parse_json('{document}') as v)"), Definitions()).text
    (row,) = sessions.small.sql(query).collect()
    assert dict(zip(VALUES, row, strict=True)) == VALUES


@pytest.mark.core
def test_a_cast_that_does_not_fit_is_an_error(sessions: SparkSessions) -> None:
    query = translate(Edited('select v:s::int from (select parse_json(\'{"s": "x"}\') as v)'), Definitions()).text
    with pytest.raises(Exception, match="INVALID_VARIANT_CAST"):
        sessions.small.sql(query).collect()
