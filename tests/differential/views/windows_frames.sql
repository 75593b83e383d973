-- Aggregates over every kind of frame. Frames of ROWS have an order that tells all rows apart: k, i, b, d, f, s, ts.

create view rows_to_current as
select k, i, b, sum(i) over (partition by g order by b, i, k, d, s, ts rows between unbounded preceding and current row) as x from t;

create view rows_from_current as
select k, i, b, sum(b) over (partition by g order by b, i, k, d, s, ts rows between current row and unbounded following) as x from t;

create view rows_everything as
select k, i, avg(d) over (partition by k order by b, i, g, d, s, ts rows between unbounded preceding and unbounded following) as x from t;

create view rows_around as
select k, i, b, sum(i) over w as x, count(*) over w as n, min(s) over w as m
from t window w as (partition by k order by b, i, g, d, s, ts rows between 1 preceding and 1 following);

create view rows_before as
select k, i, b, max(i) over (partition by k order by b, i, g, d, s, ts rows between 3 preceding and 1 preceding) as x from t;

create view rows_after as
select k, i, b, count(i) over (partition by k order by b desc, i, g, d, s, ts rows between 1 following and 2 following) as x from t;

create view rows_one_ahead as
select k, i, b, count(*) over (partition by k order by b, i, g, d, s, ts rows between 1 following and 1 following) as x from t;

create view range_default as
select k, i, sum(i) over (partition by g order by k) as x, count(*) over (partition by g order by k) as n from t;

create view range_from_current as
select k, i, sum(i) over (partition by g order by k desc range between current row and unbounded following) as x from t;

create view range_numbers as
select k, i, sum(k) over (partition by g order by i range between 2 preceding and 3 following) as x from t;

create view range_before as
select k, i, count(*) over (partition by g order by i range between 5 preceding and 1 preceding) as x from t;

create view range_nulls_last as
select k, i, sum(k) over (partition by g order by i nulls last range between unbounded preceding and 1 following) as x from t;

create view range_decimals as
select k, d, count(*) over (partition by k order by d range between 1.5 preceding and 0.76 following) as x from t;

create view range_doubles as
select k, f, count(*) over (partition by k order by f range between 1.0 preceding and 1.0 following) as x from t;

create view range_interval as
select k, ts, count(*) over (partition by k order by ts range between interval '10' minute preceding and current row) as x from t;

create view range_interval_both as
select k, ts, sum(i) over (order by ts range between interval '30' minute preceding and interval '60' minute following) as x from t;

create view range_days as
select k, dt, count(i) over (partition by g order by dt range between interval '3' day preceding and interval '1' day following) as x from t;

create view range_months as
select k, dt, count(*) over (order by dt range between interval '2' month preceding and current row) as x from t;

create view no_order as
select k, g, sum(i) over (partition by g) as x, count(distinct_k) over (partition by g) as n
from (select k, g, i, k as distinct_k from t);

create view no_partition as
select k, i, sum(i) over (order by k) as x, count(*) over () as n from t;

create view nan_keys as
select f, i, sum(i) over (partition by f) as x, count(*) over (partition by f order by i) as n from t;

create view sum_of_doubles as
select k, i, sum(case when f between -1000 and 1000 then f end) over (partition by k order by i) as x from t;

create view filtered_call as
select k, i, sum(i) filter (where o) over (partition by g) as x, count(*) filter (where i > 0) over (partition by g) as n from t;
