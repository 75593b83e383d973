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
