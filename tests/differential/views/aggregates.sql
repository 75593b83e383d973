-- Aggregates: DISTINCT, FILTER, HAVING, QUALIFY, and the rarer functions.

create view counts as
select g, count(*) as n, count(i) as c, count(i, s) as b, count(distinct i) as d, count(distinct i, s) as e from t group by g;

create view sums as
select g, sum(i) as a, sum(b) as b, sum(d) as c, sum(distinct i) as e, avg(i) as f from t group by g;

create view totals as
select count(*) as n, sum(i) as x, avg(b) as a, max(s) as m, min(ts) as l, count(distinct g) as d from t;

create view total_of_nothing as
select count(*) as n, sum(i) as x, max(s) as m from t where k = 99;

create view without_keys_having as
select count(*) as n, sum(i) as x from t having count(*) > 5;

create view having_number as
select g, sum(i) as x from t group by g having sum(i);

create view having_subquery as
select g, max(i) as m from t group by g having max(i) >= (select avg(n) from u);

create view filters as
select k, count(*) filter (where o) as a, sum(i) filter (where o is null) as b, max(s) filter (where i > 0) as c, count(distinct g) filter (where not o) as d from t group by k;

create view distinct_filters as
select k, sum(distinct i) filter (where o) as a, count(distinct s) filter (where i is not null) as b, count(*) as n from t group by k;

create view bits as
select k, bit_and(i) as a, bit_or(i) as b, bit_xor(i) as c from t group by k;

create view statistics as
select g, round(stddev(i), 6) as a, round(stddev_pop(i), 6) as b, round(variance(i), 6) as c, round(var_pop(i), 6) as d from t group by g;

create view correlations as
select g, round(covar_pop(i, k), 6) as b, round(covar_samp(i, k), 6) as c, regr_count(i, k) as d from t group by g;

create view regressions as
select round(regr_slope(i, k), 6) as a, round(regr_intercept(i, k), 6) as b, round(regr_avgx(i, k), 6) as c, round(skewness(i), 6) as d, round(kurtosis(i), 6) as e from t;

create view quantiles as
select g, percentile(i, 0.5) as a, percentile(i, array(0.25, 0.75)) as b, median(i) as c, percentile_disc(0.5) within group (order by i) as d, percentile_cont(0.3) within group (order by i desc) as e from t group by g;

create view extremes as
select g, max_by(k, struct(i, k)) as a, min_by(s, struct(i, s)) as b, greatest(max(i), max(k)) as c, max(o) as d from t group by g;

create view modes as
select s, mode() within group (order by v) as m, mode(v, true) as n from p group by s;

create view texts_joined as
select k, listagg(s, ',') within group (order by s) as a, string_agg(distinct g, '|') within group (order by g) as b from t group by k;

create view histograms as
select k, approx_count_distinct(i) as a, sort_array(collect_set(i)) as b from t group by k;

create view by_ordinal as
select upper(g), k, count(*) as n from t group by 1, 2;

create view by_all as
select g, o, count(*) as n, max(i) as m from t group by all;

create view by_alias as
select coalesce(g, 'none') as label, sum(i) as x from t group by label having label <> 'a';

create view distinct_of_groups as
select distinct count(*) as n from t group by g;

create view expressions_of_calls as
select g, sum(i) * 2 + count(*) as a, coalesce(sum(i), 0) - coalesce(sum(k), 0) as b, case when count(*) > 2 then max(s) end as c from t group by g;

create view qualified_groups as
select * from (select g, k, count(*) as n from t group by g, k) qualify rank() over (partition by g order by n desc) = 1;

create view qualified_having as
select * from (select g, k, sum(i) as x from t group by g, k having count(*) > 1) qualify max(x) over (partition by g) <=> x;

create view first_of_ordered as
select k, min_by(s, id) as f, max_by(s, id) as l from p group by k;

create view average_of_cases as
select k, avg(case when n > 1 then 1.0 else 0.0 end) as a, avg(w) as w from u group by k;

create view folded_lists as
select k, folded from (select k, aggregate(sort_array(collect_list(n)), 1, (a, x) -> (a * x) % 97 + 1) as folded from u where n is not null group by k);
