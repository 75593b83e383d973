-- What users do over time: cohorts, retention, funnels, sessions. Users are k, what they do is g.

create view cohorts as
with f as (select k, min(cast(ts as date)) as d0 from t group by k), a as (select distinct k, cast(ts as date) as d from t)
select date_trunc('week', f.d0) as week, count(distinct f.k) as users,
    count(distinct case when a.d between f.d0 + 1 and f.d0 + 7 then a.k end) as w1,
    count(distinct case when a.d between f.d0 + 8 and f.d0 + 14 then a.k end) as w2
from f join a on a.k = f.k and a.d between f.d0 and f.d0 + 28 group by 1;

create view cohorts_by_day as
with f as (select k, min(dt) as d0 from t group by k)
select f.d0, t.dt - f.d0 as age, count(distinct t.k) as users, count(distinct case when t.o then t.g end) as kinds,
    sum(t.d) as total, sum(t.d) / count(distinct t.k) as mean
from f join t on t.k = f.k group by 1, 2;

create view retention as
with active as (select distinct k, date_trunc('month', ts) as m from t)
select a.m, count(distinct a.k) as users, count(distinct b.k) as kept
from active a left join active b on b.k = a.k and b.m = a.m + interval 1 month group by a.m;

create view funnel as
select count(distinct case when g = 'a' then k end) as a, count(distinct case when g = 'b' then k end) as b,
    count(distinct case when g = 'ä' then k end) as c, count(distinct k) as users from t;

create view ordered_funnel as
with a as (select k, min(ts) as ts from t where g = 'a' group by k),
    b as (select t.k, min(t.ts) as ts from t join a on a.k = t.k and t.ts > a.ts where g = 'b' group by t.k)
select date_trunc('week', a.ts) as week, count(*) as n, count(b.k) as went_on, count(x.k) as known
from a left join b using (k) left join u x using (k) group by 1;

create view distinct_twice as
with a as (select g, count(distinct k) as x, count(distinct i) as y, sum(d) as s from t group by g),
    b as (select g, count(distinct k) as x, count(distinct i) as y, max(i) as m from t where o group by g)
select a.g, a.x, a.y, a.s, b.x as bx, b.y as `by`, b.m from a join b on a.g <=> b.g;
