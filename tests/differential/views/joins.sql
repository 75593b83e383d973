-- Joins of all kinds, over keys that are NULL, over one table twice, with conditions that are no equality.

create view left_joined as
select p.id, p.k, u.n, u.g from p left join u on p.k = u.k;

create view right_joined as
select p.id, u.k, u.n from p right join u on p.k = u.k;

create view full_joined as
select p.id, p.k as pk, u.k as uk, u.n from p full join u on p.k = u.k;

create view full_joined_on_two as
select t.i, u.n, t.g as tg, u.g as ug from t full outer join u on t.k = u.k and t.g = u.g;

create view full_with_filter_in_on as
select p.id, u.n from p full join u on p.k = u.k and u.n > 1;

create view left_filtered_after as
select p.id, u.n from p left join u on p.k = u.k where u.n is null or u.n > 2;

create view null_safe_join as
select p.id, u.n from p join u on p.k <=> u.k;

create view self_joined as
select a.id, b.id as other from p a join p b on a.k = b.k and a.id < b.id;

create view self_left_joined as
select a.id, b.id as next from p a left join p b on b.id = a.id + 1;

create view non_equal_left as
select p.id, u.n from p left join u on p.v < u.n;

create view non_equal_full as
select p.id, u.n from p full join u on p.v < u.n and u.w > 2;

create view or_left_join as
select p.id, u.n from p left join u on p.k = u.k or p.v = u.n;

create view full_using as
select k, id, n from p full join u using (k);

create view using_chain as
select k, g, i, n, id from t join u using (k, g) join p using (k);

create view left_using_chain as
select k, id, n, i from p left join u using (k) left join (select k, i from t where i > 0) x using (k);

create view natural_joined as
select * from (select k, g, n from u) natural join (select k, i, d from t where i > 2);

create view natural_full as
select k, n, v from (select k, n from u) natural full join (select k, v from p);

create view semi_joined as
select p.id, p.k from p left semi join u on p.k = u.k and u.n > 0;

create view anti_joined as
select p.id, p.k from p left anti join u on p.k = u.k;

create view anti_non_equal as
select p.id from p left anti join u on p.v < u.n;

create view left_chain as
select p.id, u.n, q.c from p left join u on p.k = u.k left join q on q.id = u.n and q.r = 0;

create view outer_mixture as
select p.id, u.n, q.c from p left join u on p.k = u.k join q on q.id = p.id full join (select k as kk from t where i = 3) x on x.kk = u.k;

create view join_of_groups as
select a.k, a.n, b.x from (select k, count(*) as n from t group by k) a left join (select k, sum(n) as x from u group by k) b on a.k = b.k;

create view expression_keys as
select p.id, u.n from p join u on p.k + 1 = u.n * 1;

create view lateral_join as
select p.id, l.n, l.g from p, lateral (select n, g from u where u.k = p.k and u.n > 0) l;

create view lateral_left as
select p.id, l.m from p left join lateral (select max(n) as m from u where u.k = p.k) l on true;

create view asof_joined as
select t.k, t.ts, x.nt, x.id from t left asof join (select 1 + id % 3 as k, nt, id from times) x match_condition (t.ts >= x.nt) on t.k = x.k;
-- spark: select t.k, t.ts, l.m.nt as nt, l.m.id as id from t left join lateral
-- (select max(struct(nt, x.k, id)) as m from (select 1 + id % 3 as k, nt, id from times) x where x.k = t.k and x.nt <= t.ts) l on true
