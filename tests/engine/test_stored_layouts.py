"""Layouts of earlier releases stay what they were, so that stored state is found again.

When one of these changes on purpose, ``RULES`` in ``engine/layout.py`` is raised and all are written anew. A class or a field that
is only renamed keeps its first name in layouts (``sql/plan/ir/description.py``).
"""

from __future__ import annotations

from airflow_pipelines.engine.spark.sessions import SparkSessions
from tests.engine.programs import Running

PROGRAM = """
create table t (k int, v int, d double);
create table e (k int, at timestamp lateness interval 1 hour, v int) with ('append_only' = 'true');
create table edges (a int, b int);
create view sums as select k, sum(v) as s, count(*) as n from t group by k having count(*) > 0;
create view highest as select k, max(v) as high, min(v) as low from e group by k;
create view medians as select k, median(v) as m from t group by k;
create view both_ as select t.k, u.v from t join t as u on t.k = u.v where t.v > 1;
create view either as select k, v from t union all select v, k from t;
create view outer_ as select t.k, s.s from t left join sums s on t.k = s.k;
create view ranked as select k, v, rank() over (partition by k order by v) as r from t;
create view rounded as select k, d, avg(d) over (partition by k) as a from t;
create view first_ as select k, at, v
    from (select *, row_number() over (partition by k order by at desc, v) as r from e) where r <= 2;
create view top_ as select k, v from t order by v, k limit 3;
create view above as select k, v from t where v > (select avg(v) from t);
create view recent as select k, v from e where at > now() - interval 1 day;
create view today as select k, v, current_date() as day from t;
create view hours as select date_trunc('hour', at) as h, count(*) as n from e group by date_trunc('hour', at);
create view closed with ('emit_final' = 'h') as
    select date_trunc('hour', at) as h, sum(v) as s from e group by date_trunc('hour', at);
declare recursive view reach (a int, b int);
create view reach as select a, b from edges union select r.a, e.b from reach r join edges e on r.b = e.a;
create view tree as with recursive w (a, n) as (select a, 1 from edges where b is null union all
    select e.b, n + 1 from w join edges e on w.a = e.a where n < 5) select * from w;
create view constant_ as select 1 as one;
create view whole as select k, percentile_approx(v, 0.5) over (order by k, v) as p from t;
"""
INCREMENTAL = {
    "t": "29b4036abd699aaf91c95898b5c8fd3e",
    "e": "e1dea2d4c9b9e3529e3b159b6a28f293",
    "edges": "9fc39ff917dd4f27b6274635e3655da0",
    "error_view": "40f58cd65c3d730551431223653ff0d1",
    "now$1": "2bcc2f9d87002fd302b82a3aa7dfbb01",
    "now$2": "526ecaab71ae0cf578788c280572205d",
    "closed$waterline": "13fc4c492ae0092682074c551053b6ca",
    "sums": "63eac89821cf41e3bd08356763ca284e",
    "highest": "3a29fb9beec728dde5a5a73397adff5b",
    "medians": "d03008492d80641dfe1ea2e8eba5e357",
    "both_": "1643ac47fc9400db4204e15350a2ac9e",
    "either": "2d6a27afe8a421a42452ee6b5eabb083",
    "outer_": "fa37dc7cda9440b8aaa8e6b2bfbf59cf",
    "ranked": "39507878a09b48626276932d824203d4",
    "rounded$1": "ff8631f8c887e95f35072d42271c82b2",
    "rounded": "c079c84e577e3a06ff11ea2534510cf1",
    "first_$1": "2f8512eb5830079f460992957f5fdf25",
    "first_": "ad45cf09eb825cd4d77d9bfd7c2998da",
    "top_": "b2c5dc97b3c7a819c5decc30a154c07f",
    "above$1": "4e17254ee6894eea4bc1335c52a22d28",
    "above": "d488b4667a7c1f811a327e4f738d5135",
    "recent": "31bbf9a2fb89c458744c1f82c647f6d0",
    "today": "5c302e2c0fe579030603a4f742b21e11",
    "hours": "fef7bdeda1276875ea5d50f37c54677e",
    "closed$all": "d5bcc987a088fd88972c87bb7d5c987b",
    "closed": "bc3b8443d3bf0f3b078aa2644572b8f7",
    "reach": "c0b2900c90742152ce09ea1a49568779",
    "tree$r1": "e43fa9125e258c051da313946a8d0622",
    "tree": "cbf415311d1891b85d66f1b872cfa1c5",
    "constant_": "c9a6c5e87abddfbd57982c3af63e7dee",
    "whole": "b2dbdb4ac6412b069547e066b737447a",
}
FULL = {
    "sums": "e6a5ff22637f7b650146ec4582f0d768",
    "highest": "d6790b0606787d5242cf77c869fa1f0c",
    "medians": "8f0e2da0d53abad14325c5e254ab8d53",
    "both_": "5ac91d19301cbfe815543a61edd61442",
    "either": "be1b5d436829b678e72597ef6172b2d7",
    "outer_": "3f644b9dce02daa9392a44ecd408481d",
    "ranked": "5b8e3428945352f24d33dbabfdeea138",
    "rounded": "8e7377fb60a62423e00cc06333e7d4d6",
    "first_": "13d9385d49450ebfbe63dfb9905728c9",
    "top_": "e3febb7e230d96be46433ca791c8786c",
    "above": "87237da917bfceaee626490f6e5dcd5a",
    "recent": "ed460eb0923fd8b95098010afac757f5",
    "today": "4d3430adb03ceea0c9b1f81c2745082f",
    "hours": "b33443183532d78b8ae6ceb45a2e204d",
    "closed$all": "681036e508ba95f3ba9e33ed7e127e5b",
    "closed": "396bf6e91ee93990523f60409a17c047",
    "reach": "68d89b948676d8b1239ac2cff3bbe04a",
    "tree": "ceb8dfafe4f7fd21fff7e236a0191fb2",
    "constant_": "4d9750343570d19af0093771e8f68ec3",
    "whole": "e4b411fda98b8797652d34ac04e7176d",
}


def test_layouts_stay(sessions: SparkSessions) -> None:
    running = Running(PROGRAM, sessions)
    assert dict(running.circuit.layouts) == INCREMENTAL
    kinds = {type(stage.node).__name__ for stage in running.circuit.stages}
    assert kinds == {"Select", "UnionAll", "Aggregate", "AffectedKeys", "AppendOnlyTopK", "Recursive", "Full"}, (
        "each kind of node is here"
    )
    full = Running(PROGRAM, sessions, "full", compiled=running.program)
    assert dict(full.circuit.layouts) == {
        **{name: INCREMENTAL[name] for name in INCREMENTAL if name in full.circuit.layouts},
        **FULL,
    }
    for one in (running, full):
        one.circuit.close()


def test_a_division_has_the_layout_that_it_had_before_it_took_zeros(sessions: SparkSessions) -> None:
    program = """create table t (k int, v int, d double);
create view shares as select k, d / v as share, v / (k + 1) / d * 2 as other from t where d / k > 0.5 and v / 2 > 1;
create view ratios as
    select k, sum(d) / count(v) as r, max(d / v) as m, d / 3 as x from t group by k, d having sum(d) / max(v) > 0;"""
    running = Running(program, sessions)
    found = running.circuit.layouts
    assert (found["shares"], found["ratios"]) == ("779f156c8dc5de49e03f307abfcbeb90", "4410a9d01a0b0d5a4f161920e91c6224")
    running.circuit.close()
