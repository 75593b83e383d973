-- First rows of an order with ties, and choices among rows that an order holds equal: all columns decide, ascending.

create view first_three as
select k, i from t order by i desc limit 3;
-- spark: select k, i from t order by i desc, k, i limit 3

create view any_four as
select g, i from t limit 4;
-- spark: select g, i from t order by g, i limit 4

create view skipped_some as
select k, s from t order by k desc nulls last limit 4 offset 2;
-- spark: select k, s from t order by k desc nulls last, k, s limit 4 offset 2

create view only_skipped as
select id, k from p order by k offset 3;
-- spark: select id, k from p order by k, id offset 3

create view first_of_groups as
select g, count(*) as n from t group by g order by n desc limit 2;
-- spark: select g, count(*) as n from t group by g order by n desc, g limit 2

create view first_of_distinct as
select distinct k from t order by k desc limit 2;

create view first_of_union as
select k from t union all select k from u order by k limit 5;

create view first_of_join as
select p.id, u.n from p join u on p.k = u.k order by u.n desc limit 4;
-- spark: select p.id, u.n from p join u on p.k = u.k order by u.n desc, p.id limit 4

create view best_of_each as
select g, i, k from (select g, i, k, rank() over (partition by g order by i desc) as r from t) where r <= 2;

create view densely_best_of_each as
select g, i from (select g, i, dense_rank() over (partition by g order by i desc nulls last) as r from t) where r = 2;

create view one_of_each as
select k, n, g from (select *, row_number() over (partition by k order by n desc) as r from u) where r = 1;
-- spark: select k, n, g from (select *, row_number() over (partition by k order by n desc, k, g, n, w) as r from u) where r = 1

create view one_qualified as
select g, k, n from u qualify row_number() over (partition by g order by n) <= 2;
-- spark: select g, k, n from (select *, row_number() over (partition by g order by n, k, g, n, w) as r from u) where r <= 2

create view tied_lags as
select g, k, n, lag(k) over (partition by g order by n) as l from u;
-- spark: select g, k, n, lag(k) over (partition by g order by n, k, g, n, w) as l from u

create view tied_numbers as
select g, k, n, row_number() over (order by g) as r from u;
-- spark: select g, k, n, row_number() over (order by g, k, g, n, w) as r from u

create view tied_tiles as
select g, k, n, ntile(2) over (partition by k order by g) as t from u;
-- spark: select g, k, n, ntile(2) over (partition by k order by g, k, g, n, w) as t from u

create view tied_firsts as
select g, k, n, first_value(k) over (partition by g order by n) as f, last_value(k) over (partition by g order by n) as l from u;
-- spark: select g, k, n, min(struct(n, k, w)) over (partition by g).k as f,
-- max(struct(n, k, w)) over (partition by g order by n).k as l from u

create view tied_rows_frames as
select g, k, n, sum(k) over (partition by g order by n rows between 1 preceding and current row) as x from u;
-- spark: select g, k, n, sum(k) over (partition by g order by n, k, g, n, w rows between 1 preceding and current row) as x from u

create view tied_maxima as
select g, max_by(k, n) as most, min_by(k, n) as least from u group by g;
-- spark: select g, max(struct(n, k)) filter (where n is not null).k as most, min(struct(n, k)) filter (where n is not null).k as least from u group by g

create view tied_modes as
select k, mode(n) as m from u group by k;
-- spark: select g.k, min_by(n, struct(-c, n)) filter (where n is not null) as m from (select k, n, count(*) as c from u group by k, n) as g group by g.k

create view limited_inside as
select u.k, u.n from u join (select distinct k from t order by k desc limit 2) x on x.k = u.k;

create view limited_in_subquery as
select id, v from p where k in (select k from u where n is not null order by n desc limit 2);
-- spark: select id, v from p where k in (select k from u where n is not null order by n desc, k limit 2)

create view top_of_nothing as
select id from p where id < 0 order by id limit 3;

create view limit_zero as
select id from p limit 0;
