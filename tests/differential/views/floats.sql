-- NaN, infinities and both zeros.

create view by_float as
select f, count(*) as n, sum(i) as x from t group by f;

create view by_negated_float as
select -f as m, count(*) as n from t group by -f;

create view distinct_floats as
select distinct f from t;

create view equal_floats as
select a.i, b.i as j from t a join t b on a.f = b.f and a.k = b.k;

create view null_safe_floats as
select a.g, b.n from nums a join (select f, count(*) as n from nums group by f) b on a.f <=> b.f;

create view compared_floats as
select i, f, f > 0 as p, f = 0 as z, f < double('NaN') as l, f = double('NaN') as n, isnan(f) as q from t;

create view least_float as
select k, min(f) as l, max(f) as m, count(f) as n from t group by k;

create view summed_floats as
select k, sum(f) as s from t group by k;

create view finite_sums as
select k, sum(f) as s, avg(f) as a from t where f between -100 and 100 group by k;

create view mixed_reals as
select g, sum(r) as s, max(r) as m, min(f) as l from nums where r < 100 group by g;

create view float_order as
select f, i from t where k > 0 order by f desc, i limit 4;

create view float_ranks as
select f, rank() over (order by f) as r, dense_rank() over (order by f desc) as d from t;

create view float_arithmetic as
select i, f * 2 as a, f - f as b, f + 1 as c, abs(f) as d, signum(f) as e, nanvl(f, -1.0) as g from t;

create view float_casts as
select i, try_cast(f as int) as a, try_cast(f as decimal(10,2)) as b, try_cast(f as bigint) as c from t;

create view float_not_in as
select i, f from t where f not in (select f from nums where f is not null);

create view float_exists as
select r from nums where exists (select 1 from t where t.f = nums.f);

create view float_intersect as
select f from t intersect select f from nums;

create view float_except as
select f from t except all select f from nums;

create view float_statistics as
select g, count(distinct f) as n, bool_or(isnan(f)) as a, max(f) filter (where not isnan(f)) as m from nums group by g;

create view float_structs as
select struct(f, k) as s, count(*) as n from t group by struct(f, k);

create view float_arrays as
select array(f, 0.0) as l, count(*) as n from t group by array(f, 0.0);

create view float_zero_sign as
select i, cast(f * 0 as string) as z, cast(-f as string) as n from t where f = 0;

create view float_quotients as
select i, f / i as a, r / f as b, 1 / f / r as c, i / (f * 0) as z from t join nums using (f);
-- spark: select i, case when i <> 0 then f / i when i = 0 and f = f then f * double('Infinity') end as a,
-- case when f = 0 then r * double('Infinity') else r / f end as b,
-- case when f = 0 then (case when r = 0 then double('Infinity') else double('Infinity') / r end) else (case when r = 0 then 1 / f * double('Infinity') else 1 / f / r end) end as c,
-- case when f * 0 = 0 then i * double('Infinity') else i / (f * 0) end as z from t join nums using (f)

create view float_ratio_of_sums as
select k, sum(f) / count(i) as a, sum(cast(i as double)) / sum(i) as b, avg(f / 4e0) as c from t where f between -100 and 100 group by k;
-- spark: select k, case when count(i) = 0 then sum(f) * double('Infinity') else sum(f) / count(i) end as a,
-- case when sum(i) = 0 then double('NaN') else sum(cast(i as double)) / sum(i) end as b, avg(f / 4e0) as c
-- from t where f between -100 and 100 group by k

create view float_quotient_groups as
select f / i as q, count(*) as n, max(k / f) as m from t where f / i > 0 group by f / i having max(1 / f) is not null;
-- spark: select q, count(*) as n, max(m) as m from (select case when i <> 0 then f / i when i = 0 then f * double('Infinity') end as q,
-- case when f = 0 then k * double('Infinity') else k / f end as m, case when f = 0 then double('Infinity') else 1 / f end as h from t)
-- where q > 0 group by q having max(h) is not null
