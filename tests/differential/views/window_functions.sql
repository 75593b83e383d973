-- Every window function, over orders that tell all rows apart.

create view numbered as
select k, i, b, row_number() over (partition by g order by k, i, b, d, s, ts) as r from t;

create view ranked as
select g, i, rank() over (partition by g order by i) as r, dense_rank() over (partition by g order by i) as d from t;

create view shares as
select g, i, percent_rank() over (partition by g order by i) as p, cume_dist() over (partition by g order by i) as c from t;

create view tiles as
select k, i, b, ntile(3) over (partition by g order by k, i, b, d, s, ts) as n from t;

create view lagged as
select k, i, b, lag(i) over (partition by g order by k, i, b, d, s, ts) as l from t;

create view lagged_by_two as
select k, i, b, lag(s, 2, 'none') over (partition by g order by k, i, b, d, s, ts) as l from t;

create view led as
select k, i, b, lead(d, 1, cast(0 as decimal(10,2))) over (partition by k order by i, b, g, d, s, ts) as l from t;

create view lagged_past_nulls as
select k, i, b, lag(i) ignore nulls over (partition by g order by k, i, b, d, s, ts) as l from t;

create view firsts as
select k, i, b, first_value(s) over (partition by g order by k, i, b, d, s, ts) as f from t;

create view lasts as
select k, i, b, last_value(s) over (partition by g order by k, i, b, d, s, ts rows between unbounded preceding and unbounded following) as l from t;

create view lasts_so_far as
select k, i, b, last_value(i) ignore nulls over (partition by g order by k, i, b, d, s, ts rows unbounded preceding) as l from t;

create view firsts_nearby as
select k, i, b, first_value(i) ignore nulls over (partition by g order by k, i, b, d, s, ts rows between 2 preceding and 1 following) as f from t;

create view nths as
select k, i, b, nth_value(i, 2) over (partition by g order by k, i, b, d, s, ts rows between unbounded preceding and unbounded following) as n from t;

create view lists as
select k, i, b, collect_list(i) over (partition by g order by k, i, b, d, s, ts rows between 1 preceding and current row) as l from t;

create view sets as
select k, i, sort_array(collect_set(s) over (partition by g)) as l from t;

create view least_and_most as
select k, i, min(s) over (partition by g) as m, max(ts) over (partition by g order by k) as x, max(f) over (partition by g) as f from t;

create view best_by as
select k, i, max(struct(i, s)) over (partition by g) as x from t;

create view distinct_over as
select distinct g, count(*) over (partition by g) as n, sum(i) over (partition by g) as x from t;

create view over_groups as
select g, k, sum(i) as x, sum(sum(i)) over (partition by g order by k) as running, rank() over (order by count(*) desc, g, k) as r
from t group by g, k;

create view share_of_total as
select g, count(*) as n, round(count(*) / sum(count(*)) over (), 6) as share from t group by g;

create view windows_in_expressions as
select k, i, i - avg(i) over (partition by g) as off, case when row_number() over (partition by g order by k, i, b, d, s, ts) = 1 then 'first' end as p
from t;

create view windows_over_windows as
select k, i, max(r) over (partition by k) as m from (select k, i, rank() over (partition by g order by i) as r from t);

create view keyed_changes as
select id, v, lag(v) over (partition by k order by id) as before, v - lag(v, 1, 0) over (partition by k order by id) as gained from p;

create view window_over_join as
select p.id, u.n, count(*) over (partition by p.k) as c, sum(u.n) over (partition by p.s order by p.id) as x from p join u on p.k = u.k;
