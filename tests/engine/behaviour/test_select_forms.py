"""Forms of SELECT that Spark does not have, as views that change."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.engine.programs import Running

if TYPE_CHECKING:
    from airflow_pipelines.engine.spark.sessions import SparkSessions

PROGRAM = """
create table t (id int primary key, k int, s varchar);
create table u (k int primary key, "N" varchar);
create materialized view newest as select distinct on (k) k, id, s from t order by k, id desc;
create materialized view replaced as select * replace (upper(s) as s, id * 10 as id) from t;
create materialized view joined as select t.* replace (t.k + 1 as k), u."N" from t join u on t.k = u.k;
create materialized view least as select * exclude (s) from t order by id limit 1, 2;
create materialized view applied as select t.id, x.n from t outer apply (select u."N" as n from u where u.k = t.k) as x;
create materialized view middle as select id as 'the id' from t where id between symmetric 3 and 2;
create materialized view related as select k, corr(distinct id, length(s)) as c, count(*) as n from t group by k;
"""


def test_views(sessions: SparkSessions) -> None:
    running = Running(PROGRAM, sessions)
    names = {name: [column.name for column in view.columns] for name, view in running.program.views.items()}
    assert (names["replaced"], names["joined"], names["least"]) == (["id", "k", "s"], ["id", "k", "s", "N"], ["id", "k"])
    assert (names["newest"], names["middle"]) == (["k", "id", "s"], ["the id"])
    running.insert("t", (1, 1, "a"), (2, 1, "bb"), (3, 2, "c"))
    running.insert("u", (1, "one"))
    assert running.rows("newest") == [(1, 2, "bb"), (2, 3, "c")]
    assert running.rows("replaced") == [(10, 1, "A"), (20, 1, "BB"), (30, 2, "C")]
    assert running.rows("joined") == [(1, 2, "a", "one"), (2, 2, "bb", "one")]
    assert running.rows("least") == [(2, 1), (3, 2)]
    assert running.rows("applied") == [(1, "one"), (2, "one"), (3, None)]
    assert running.rows("related") == [(1, 1.0, 2), (2, None, 1)]
    running.delete("t", (2, 1, "bb"))
    assert running.rows("newest") == [(1, 1, "a"), (2, 3, "c")]
    assert running.rows("least") == [(3, 2)]
    assert running.rows("middle") == [(3,)]
    assert running.rows("related") == [(1, None, 1), (2, None, 1)]
