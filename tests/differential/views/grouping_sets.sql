-- ROLLUP, CUBE and GROUPING SETS over keys that are NULL themselves.

create view rolled_up as
select g, k, count(*) as n, sum(i) as x from t group by rollup (g, k);

create view cubed as
select g, k, count(*) as n, sum(d) as x from t group by cube (g, k);

create view told_apart as
select g, k, grouping(g) as gg, grouping(k) as gk, grouping_id() as gid, count(*) as n from t group by cube (g, k);

create view with_grouping_id as
select g, k, o, grouping_id(g, k, o) as gid, count(i) as n from t group by grouping sets ((g, k, o), (g, o), (k), ());

create view sets_without_total as
select g, k, count(*) as n from t group by grouping sets ((g), (k));

create view sets_twice as
select g, count(*) as n from t group by grouping sets ((g), (g), ());

create view only_total as
select count(*) as n, sum(i) as x from t group by grouping sets (());

create view composite_rollup as
select g, k, o, count(*) as n from t group by rollup ((g, k), o);

create view mixed_with_plain as
select g, k, o, count(*) as n from t group by g, rollup (k, o);

create view crossed_sets as
select g, k, o, count(*) as n from t group by grouping sets ((g), ()), grouping sets ((k), (o));

create view with_rollup_words as
select g, k, max(s) as m from t group by g, k with rollup;

create view rolled_expressions as
select upper(g) as u, k % 2 as h, count(*) as n from t group by rollup (upper(g), k % 2);

create view rolled_distinct as
select g, k, count(distinct i) as n, count(distinct s) as m from t group by rollup (g, k);

create view rolled_and_filtered as
select g, k, count(*) filter (where o) as n, sum(i) filter (where i > 0) as x from t group by cube (g, k);

create view rolled_having as
select g, k, count(*) as n from t group by rollup (g, k) having grouping(k) = 1 and count(*) > 1;

create view rolled_and_ordered as
select g, k, count(*) as n from t group by rollup (g, k) order by grouping_id() desc, n desc, g, k limit 5;

create view rolled_windows as
select g, k, count(*) as n, rank() over (partition by grouping_id() order by count(*) desc) as r from t group by rollup (g, k);

create view rolled_nan as
select f, count(*) as n from t group by rollup (f);

create view labelled_totals as
select case when grouping(g) = 1 then 'all' else coalesce(g, 'none') end as label, sum(d) as x from t group by rollup (g);

create view rolled_statistics as
select g, k, round(stddev_pop(i), 6) as s, avg(b) as a, percentile(i, 0.5) as p from t group by rollup (g, k);
