-- Decimals at the limits of their types.

create view decimal_keys as
select a, count(*) as n from nums group by a;

create view decimal_limits as
select g, max(a) as m, min(a) as l, max(c) as mc, min(c) as lc from nums group by g;

create view decimal_sums as
select g, sum(e) as s, sum(h) as x, count(h) as n from nums group by g;

create view decimal_averages as
select g, avg(e) as a, avg(h) as b from nums group by g;

create view decimal_average_of_all as
select avg(h) as a, avg(e) as b, sum(e) as s, try_sum(c) as t from nums;

create view decimal_average_of_cases as
select g, avg(case when h > 0 then 1.0 else 0.0 end) as a from nums group by g;

create view decimal_arithmetic as
select g, e + h as a, e * h as b, h - e as c, try_divide(e, h) as d from nums;

create view decimal_overflow as
select g, try_add(a, cast(1 as decimal(38,0))) as p, try_subtract(a, cast(1 as decimal(38,0))) as m, try_multiply(a, cast(2 as decimal(38,0))) as t from nums;

create view decimal_division as
select g, h / 7 as a, h / 0.3 as b, h % 2 as c, try_divide(c, 3) as d from nums;

create view decimal_rounding as
select g, round(h, 1) as a, bround(h, 1) as b, floor(h) as c, ceil(h) as d, round(e, -2) as f from nums where abs(e) < 1000 or e is null;

create view decimal_casts as
select g, cast(h as int) as a, try_cast(a as bigint) as b, cast(h as string) as c, try_cast(c as decimal(10,4)) as d, try_cast(e as decimal(5,1)) as f from nums;

create view decimal_equal_scales as
select x.g, y.h from nums x join nums y on x.e = y.h;

create view decimal_unions as
select h as v from nums union all select e from nums union all select c from nums;

create view decimal_distinct_unions as
select h as v from nums union select cast(h as decimal(10,4)) from nums union select 2.5;

create view decimal_windows as
select g, h, sum(h) over (partition by g order by h) as s, avg(h) over (partition by g) as a, lag(h, 1, 0.00) over (partition by g order by h, e, c, a) as l from nums;

create view decimal_top as
select a, c from nums order by a desc nulls last, c limit 3;

create view decimal_distinct_calls as
select g, sum(distinct h) as s, count(distinct e) as n, avg(distinct h) as a from nums group by g;

create view decimal_statistics as
select g, round(stddev(h), 4) as s, round(variance(h), 4) as v, round(var_pop(e), 4) as p from nums where abs(e) < 1000 or e is null group by g;

create view decimal_having as
select g, sum(h) as s from nums group by g having sum(h) > 0.05 and avg(h) < 500;

create view decimal_median as
select g, median(h) as m, percentile(h, 0.25) as p from nums group by g;
