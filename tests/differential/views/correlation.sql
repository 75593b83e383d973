-- Subqueries: EXISTS, IN, NOT IN with NULLs, scalar and lateral, up to two levels deep.

create view where_not_exists as
select id, k from p where not exists (select 1 from u where u.k = p.k and u.n > 0);

create view where_exists_uncorrelated as
select id from p where exists (select 1 from u where n = 4);

create view where_not_in as
select id, k from p where k not in (select k from u);

create view where_not_in_correlated as
select id, v from p where v not in (select n from u where u.k = p.k);

create view where_in_correlated as
select id, v from p where v in (select n + 1 from u where u.k = p.k or u.k is null);

create view where_not_in_two as
select id from p where (k, v) not in (select k, n from u where n is not null and k is not null);

create view not_in_or as
select id from p where v = 5 or k not in (select n from u where n is not null);

create view exists_as_value as
select id, exists (select 1 from u where u.k = p.k) as e, k in (select n from u where n is not null) as m from p;

create view scalar_correlated as
select id, (select sum(n) from u where u.k = p.k) as x, (select count(*) from u where u.k = p.k) as c from p;

create view scalar_compared as
select id, v from p where v > (select avg(n) from u where u.k = p.k);

create view scalar_of_own_group as
select k, i from t a where i >= (select max(i) from t b where b.g = a.g);

create view scalar_in_arithmetic as
select id, v - (select min(n) from u where u.k = p.k) + coalesce((select count(distinct g) from u where u.k = p.k), 0) as x from p;

create view scalar_non_equal as
select id, (select count(*) from u where u.n < p.v) as c from p;

create view two_levels as
select id from p where exists (select 1 from u where u.k = p.k and exists (select 1 from q where q.id = u.n));

create view two_levels_not as
select id from p where not exists (select 1 from u where u.k = p.k and not exists (select 1 from q where q.id = u.n));

create view two_levels_not_in as
select id from p where k not in (select n from u where n is not null and n not in (select id from q where c is not null));

create view two_levels_scalar as
select id, (select sum(n) from u where u.k = p.k and u.n > (select avg(i) from t where t.k = u.k)) as x from p;

create view exists_over_groups as
select g, count(*) as n from t group by g having count(*) > (select count(*) from u where u.g = t.g);

create view exists_over_aggregate as
select id from p where k in (select k from u group by k having count(*) > 1);

create view lateral_top as
select p.id, l.n from p, lateral (select n from u where u.k = p.k order by n desc limit 1) l;

create view lateral_count as
select p.id, l.c from p, lateral (select count(*) as c, max(n) as m from u where u.k = p.k) l;

create view lateral_of_lateral as
select p.id, l.n, m.c from p, lateral (select n from u where u.k = p.k) l, lateral (select count(*) as c from q where q.id = l.n) m;

create view exists_null_safe as
select id from p where exists (select 1 from u where u.k <=> p.k and u.g <=> p.s);

create view in_constants as
select id, v in (5, null) as a, v not in (5, null) as b from p where k in (1, 2, null) or v not in (5, 0);

create view any_some as
select id from p where v = (select max(v) from p p2 where p2.k <=> p.k);

create view common_tables as
with a as (select k, sum(n) as x from u group by k), b as (select k, max(x) over () as m, x from a)
select p.id, b.x, b.m from p join b on b.k = p.k where exists (select 1 from a where a.x > b.x);
