"""Fields and elements of VARIANT values."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_pipelines.engine.adhoc import run_adhoc
from airflow_pipelines.engine.changes import Op
from tests.engine.programs import Running

if TYPE_CHECKING:
    from airflow_pipelines.engine.sessions import SparkSessions


def test_fields_and_elements(sessions: SparkSessions) -> None:
    running = Running(
        """create table t (id int, j varchar, m map<varchar, int>, k varchar, n int) with ('materialized' = 'true');
        create local view p as select id, parse_json(j) as v, m, k, n from t;
        create materialized view w as
            select id, cast(p.v['a']['b'] as int) as x, cast(v.a.b as int) as y, cast(v['list'][1] as varchar) as z, m['m'] as m,
                   cast(v[k] as varchar) as byname, cast(v['list'][n] as varchar) as byplace
            from p where v['a'] is not null;
        create materialized view g as select cast(v['k'] as varchar) as k, count(*) as n from p group by cast(v['k'] as varchar)""",
        sessions,
    )
    one = (1, '{"a": {"b": 5}, "list": ["p", "q"], "k": "same"}', [("m", 7)], "k", 2)
    two = (2, '{"k": "same", "it\'s": 1}', None, None, None)
    running.insert("t", one, two)
    assert running.rows("w") == [(1, 5, 5, "p", 7, "same", "q")]
    assert running.rows("g") == [("same", 2)]
    running.step(running.changes("t", one, op=Op.DELETE))
    assert running.rows("w") == []
    assert running.rows("g") == [("same", 1)]
    found = run_adhoc(running.circuit, "select parse_json(j)['it''s']::int as i, parse_json(j)[1] as none from t").frame
    assert found is not None
    assert [tuple(row) for row in found.collect()] == [(1, None)]
